// Which ranks share a node, computed or listed: as counting tells.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "fabric/topology.hpp"

namespace mpisec::fabric {
namespace {

using Nodes = std::vector<int>;  // by rank, any names

void expect_as_counted(const Nodes& names, NodeMap::Kind kind) {
    const Topology topology(names);
    std::map<int, int> number;
    std::vector<std::vector<int>> members;
    for (std::size_t rank = 0; rank < names.size(); ++rank) {
        const auto node = static_cast<std::size_t>(
            number.try_emplace(names[rank], static_cast<int>(number.size())).first->second);
        members.resize(std::max(members.size(), node + 1));
        const int r = static_cast<int>(rank);
        EXPECT_EQ(topology.node(r), static_cast<int>(node));
        EXPECT_EQ(topology.local(r), static_cast<int>(members[node].size()));
        members[node].push_back(r);
    }
    ASSERT_EQ(topology.ranks(), static_cast<int>(names.size()));
    ASSERT_EQ(topology.nodes(), static_cast<int>(members.size()));
    bool in_rank_order = true;
    for (int rank = 1; rank < topology.ranks(); ++rank)
        in_rank_order = in_rank_order && topology.node(rank - 1) <= topology.node(rank);
    int before = 0;
    std::size_t smallest = names.size();
    for (int node = 0; node < topology.nodes(); ++node) {
        const auto& those = members[static_cast<std::size_t>(node)];
        EXPECT_EQ(topology.members(node).list(), those);
        EXPECT_EQ(topology.node_size(node), static_cast<int>(those.size()));
        EXPECT_EQ(topology.ranks_before(node), before);
        for (int rank : those) EXPECT_EQ(topology.place(rank), before++);
        smallest = std::min(smallest, those.size());
    }
    EXPECT_EQ(topology.in_rank_order(), in_rank_order);
    EXPECT_EQ(topology.smallest_node(), static_cast<int>(smallest));
    EXPECT_EQ(topology.bytes_kept() > 0, kind == NodeMap::Kind::listed);
    for (std::size_t a = 0; a < names.size(); ++a)
        EXPECT_EQ(topology.same_node(0, static_cast<int>(a)), names[0] == names[a]);
}

Nodes placed(int ranks, auto node_of) {
    Nodes names;
    for (int rank = 0; rank < ranks; ++rank) names.push_back(node_of(rank));
    return names;
}

TEST(Topology, InBlocks) {
    for (int block : {1, 2, 3, 8})
        for (int ranks : {1, 2, 7, 8, 9, 24})
            expect_as_counted(placed(ranks, [&](int rank) { return 100 - rank / block; }),
                              NodeMap::Kind::blocks);
}

TEST(Topology, DealtOutInTurn) {
    for (int nodes : {2, 3, 8})
        for (int ranks : {nodes + 1, 2 * nodes, 3 * nodes - 1})
            expect_as_counted(placed(ranks, [&](int rank) { return 7 * (rank % nodes); }),
                              NodeMap::Kind::in_turn);
}

TEST(Topology, OtherPlacements) {
    expect_as_counted({0, 0, 0, 1, 2, 2, 2}, NodeMap::Kind::listed);  // a smaller one in the middle
    expect_as_counted({0, 0, 1, 1, 1}, NodeMap::Kind::listed);        // the last one larger
    expect_as_counted({0, 1, 0, 1, 1}, NodeMap::Kind::listed);
    expect_as_counted({0, 1, 1, 0}, NodeMap::Kind::listed);
    expect_as_counted({0, 0, 1, 1, 0, 0, 1, 1}, NodeMap::Kind::listed);
    std::mt19937 random(7);
    for (int round = 0; round < 200; ++round) {
        const int nodes = 2 + static_cast<int>(random() % 5);
        Nodes names = placed(9 + static_cast<int>(random() % 20),
                             [&](int) { return static_cast<int>(random() % static_cast<unsigned>(nodes)); });
        names.insert(names.begin(), {0, 0, 1, 0});  // neither in blocks nor in turn
        expect_as_counted(names, NodeMap::Kind::listed);
    }
}

TEST(Ranks, ListedAndComputed) {
    const std::vector<int> list{5, 8, 11, 14};
    const Ranks listed = list, computed = Ranks::every(3, 5, 4);
    EXPECT_EQ(listed, computed);
    EXPECT_EQ(computed.list(), list);
    for (Ranks ranks : {listed, computed}) {
        EXPECT_EQ(ranks.size(), 4u);
        EXPECT_EQ(ranks.front(), 5);
        EXPECT_EQ(ranks.back(), 14);
        EXPECT_EQ(ranks[2], 11);
        EXPECT_EQ(std::ranges::find(list, 11) - list.begin(),
                  std::find(ranks.begin(), ranks.end(), 11) - ranks.begin());
        EXPECT_EQ(std::lower_bound(ranks.begin(), ranks.end(), 9) - ranks.begin(), 2);
        EXPECT_EQ(*(ranks.end() - 1), 14);
        EXPECT_EQ(ranks.begin()[1], 8);
    }
    EXPECT_NE(computed, Ranks::every(3, 5, 3));
    EXPECT_NE(computed, Ranks::every(2, 5, 4));
    EXPECT_TRUE(Ranks().empty());
    EXPECT_EQ(Ranks(), Ranks::every(1, 0, 0));
    EXPECT_EQ(Ranks::one(9).list(), std::vector<int>{9});
}

}  // namespace
}  // namespace mpisec::fabric
