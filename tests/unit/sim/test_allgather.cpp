// Every all-gather gives every rank every block, on clusters of any shape; and never for less than Table I of
// the paper (Lahijani et al., IPDPS 2021) says it must cost.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "support.hpp"

namespace mpisec::test {
namespace {

int ceil_lg(int n) {
    int rounds = 0;
    while (1 << rounds < n) ++rounds;
    return rounds;
}

/// Table I for nodes of any size: what holds for the average rank of each node holds for the worst rank of
/// all.
void expect_lower_bounds(const Report& report, std::string_view algorithm, const Topology& topology,
                         std::uint64_t m) {
    const auto p = static_cast<std::uint64_t>(topology.ranks());
    const auto smallest = static_cast<std::uint64_t>(topology.smallest_node());
    std::uint64_t largest = 0;
    for (int node = 0; node < topology.nodes(); ++node)
        largest = std::max(largest, static_cast<std::uint64_t>(topology.node_size(node)));
    const auto worst = report.worst();
    if (algorithm == "pipeline" && m == 0) return;  // sends nothing then
    if (algorithm.starts_with("hs") || algorithm == "pipeline") {
        // The paper's remark: what goes through shared memory is not counted.
        const std::uint64_t leaders = algorithm == "hsc" || algorithm == "pipeline" ? smallest : 1;
        EXPECT_GE(worst.communication_rounds, static_cast<std::uint64_t>(ceil_lg(topology.nodes())));
        EXPECT_GE(worst.communicated_bytes * leaders, (p - smallest) * m);
    } else {
        const int rounds = m > 0 ? ceil_lg(topology.ranks()) : 0;  // inside nodes nothing empty is sent
        EXPECT_GE(worst.communication_rounds, static_cast<std::uint64_t>(rounds));
        EXPECT_GE(worst.communicated_bytes, (p - 1) * m);
    }
    EXPECT_GE(worst.seals, 1u);
    EXPECT_GE(worst.sealed_bytes, m);
    const double rounds = std::log2(topology.nodes()) / std::log2(static_cast<double>(largest) + 1);
    EXPECT_GE(static_cast<double>(worst.opens), std::ceil(rounds - 1e-9));
    EXPECT_GE(worst.opened_bytes * smallest, (p - smallest) * m);
}

void expect_gathers(const Entry& algorithm, const std::vector<int>& node_sizes, Random& random,
                    int most_bytes = 0) {
    const Placement placement = place(node_sizes, pick(random, 0, 2), random);
    const Topology topology(placement.node);
    const Layout layout = most_bytes > 0 ? unequal_blocks(topology.ranks(), random, most_bytes)
                                         : random_layout(topology.ranks(), random);
    const ClusterModel model = random_model(random);
    Options options = any_options(random);
    SCOPED_TRACE(describe(node_sizes, placement, layout, options));
    const Outcome outcome = gather(algorithm, topology, layout, model, options);
    ASSERT_EQ(outcome.report.error, "");
    for (std::size_t rank = 0; rank < outcome.right.size(); ++rank) {
        ASSERT_FALSE(outcome.report.failed[rank]) << "rank " << rank;
        ASSERT_TRUE(outcome.right[rank]) << "rank " << rank;
    }
    const bool equal = std::all_of(layout.size.begin(), layout.size.end(),
                                   [&](std::size_t size) { return size == layout.size[0]; });
    if (equal && topology.nodes() > 1)
        expect_lower_bounds(outcome.report, algorithm.name, topology, layout.size[0]);
}

TEST_P(EveryAllgather, OnClustersOfEveryShape) {
    Random random(20210517);
    for (int nodes = 1; nodes <= 17; ++nodes) {
        if (sanitized && nodes > 5 && nodes != 8 && nodes != 17) continue;
        for (int per_node = 1; per_node <= 9; ++per_node) {
            if (sanitized && per_node > 4 && per_node != 9) continue;
            for (int i = 0; i < (sanitized ? 1 : 3); ++i)
                ASSERT_NO_FATAL_FAILURE(expect_gathers(
                    GetParam(), std::vector<int>(static_cast<std::size_t>(nodes), per_node), random));
        }
        for (int i = 0; i < (sanitized ? 4 : 20); ++i) {
            std::vector<int> sizes;
            for (int node = 0; node < nodes; ++node) sizes.push_back(pick(random, 1, 9));
            ASSERT_NO_FATAL_FAILURE(expect_gathers(GetParam(), sizes, random));
        }
    }
}

/// Small clusters many times: there are few of them, so most combinations of shape, placement, blocks and
/// model come up.
TEST_P(EveryAllgather, OnManySmallClusters) {
    Random random(4);
    for (int nodes = 1; nodes <= (sanitized ? 3 : 4); ++nodes)
        for (int i = 0; i < (sanitized ? 12 : 300); ++i) {
            std::vector<int> sizes;
            for (int node = 0; node < nodes; ++node) sizes.push_back(pick(random, 1, 3));
            ASSERT_NO_FATAL_FAILURE(expect_gathers(GetParam(), sizes, random));
        }
}

/// Blocks of very different length: with short segments (in_chunks) of none to fifteen segments, so that some
/// ranks have much to send and nothing to receive.
TEST_P(EveryAllgather, OfVeryDifferentBlocks) {
    Random random(5);
    for (int i = 0; i < (sanitized ? 16 : 400); ++i) {
        std::vector<int> sizes;
        for (int node = pick(random, 2, 5); node > 0; --node) sizes.push_back(pick(random, 1, 3));
        ASSERT_NO_FATAL_FAILURE(expect_gathers(GetParam(), sizes, random, 300));
    }
}

#ifndef MPISEC_TINY_CHUNKS
/// A rank that has its node to itself holds few segments at a time, and those of one block that it has to hand on after its own.
TEST(AllgatherPipeline, HoldsFewSealedBlocks) {
    constexpr std::size_t bytes = 12 << 20, few = 8 << 20;
    for (int nodes : {2, 4})
        for (bool few_parts : {false, true}) {
            std::vector<int> node(static_cast<std::size_t>(nodes));
            std::iota(node.begin(), node.end(), 0);
            Options options;
            options.data = false;
            options.few_parts = few_parts;
            const Report report = gather(*coll::find_algorithm(coll::Collective::allgather, "pipeline"),
                                         Topology(node), equal_blocks(nodes, bytes), {}, options)
                                      .report;
            EXPECT_EQ(report.error, "");
            EXPECT_LE(*std::ranges::max_element(report.room_bytes), few + (nodes > 2 ? bytes : 0))
                << nodes << " nodes";
        }
}
#endif

INSTANTIATE_TEST_SUITE_P(Allgather, EveryAllgather,
                         testing::ValuesIn(coll::algorithms(coll::Collective::allgather)), test_name);

}  // namespace
}  // namespace mpisec::test
