// C-Ring and C-RD (Lahijani et al. section IV.B, "Concurrent algorithms"): the ranks with the same place in
// their nodes form a group; all groups run an encrypted all-gather between nodes at once, each rank sealing
// and opening only its own share; then each node shares in plaintext. There are as many groups as the
// smallest node has ranks; further ranks of larger nodes first hand their blocks to a rank that is in a group.
#include "coll/allgather/allgather.hpp"
#include "coll/allgather/inside_node.hpp"

namespace mpisec::coll {
namespace {

/// The blocks that group `g` carries for this node.
std::vector<int> slice(const fabric::Topology& topology, int node, int g) {
    std::vector<int> ranks;
    for (int local = g; local < topology.node_size(node); local += topology.smallest_node())
        ranks.push_back(topology.members(node)[static_cast<std::size_t>(local)]);
    return ranks;
}

fabric::Task concurrent(fabric::Fabric& fabric, const Blocks& blocks, Pattern pattern) {
    const fabric::Topology& topology = fabric.topology();
    const int groups = topology.smallest_node(), mine = fabric.local() % groups;
    const bool in_group = fabric.local() < groups;
    const int owner = fabric.node_peers()[static_cast<std::size_t>(mine)];

    if (!in_group) {
        co_await fabric.send_here(owner, blocks.of(fabric.rank()));
    } else {
        for (int rank : slice(topology, fabric.node(), mine))
            if (rank != owner) co_await fabric.receive_here(rank, blocks.of(rank));

        Group group{{}, {}, fabric.node()};
        for (int node = 0; node < topology.nodes(); ++node) {
            group.ranks.push_back(topology.members(node)[static_cast<std::size_t>(mine)]);
            group.bytes.push_back(fabric::sealed_bytes(blocks.bytes(slice(topology, node, mine))));
        }
        const fabric::CiphertextBuffer room = fabric.ciphertext(group.total());
        const fabric::Plaintext own = blocks.pack(fabric, slice(topology, fabric.node(), mine));
        if (group.size() > 1)
            fabric.seal(room.part(0, fabric::sealed_bytes(own.size())), own, {fabric.rank(), 0});
        auto arrived = [&](int node, fabric::CiphertextBuffer sealed_block) {
            const std::vector<int> ranks = slice(topology, node, mine);
            const fabric::PlaintextBuffer to = blocks.room(fabric, ranks);
            fabric.open(to, sealed_block, {group.ranks[static_cast<std::size_t>(node)], 0});
            blocks.unpack(fabric, ranks, to);
        };
        if (pattern == Pattern::ring)
            co_await ring(fabric, group, room, arrived);
        else
            co_await doubling(fabric, group, room, arrived);
    }

    co_await share_inside_node(fabric, blocks, pattern, [&](int local) {
        std::vector<int> ranks;
        for (int node = 0; local < groups && node < topology.nodes(); ++node) {
            const std::vector<int> of_node = slice(topology, node, local);
            ranks.insert(ranks.end(), of_node.begin(), of_node.end());
        }
        return ranks;
    });
}

}  // namespace

fabric::Task allgather_c_ring(fabric::Fabric& fabric, const Blocks& blocks) {
    return concurrent(fabric, blocks, Pattern::ring);
}
fabric::Task allgather_c_rd(fabric::Fabric& fabric, const Blocks& blocks) {
    return concurrent(fabric, blocks, Pattern::doubling);
}

}  // namespace mpisec::coll
