// O-RD (Lahijani et al. section IV.B): the ranks of a node share their blocks in plaintext; each seals the
// node's data once, and doubling between nodes hands sealed blocks on as they are.
#include "coll/allgather/allgather.hpp"
#include "coll/allgather/between_nodes.hpp"
#include "coll/allgather/inside_node.hpp"

namespace mpisec::coll {

fabric::Task allgather_o_rd(fabric::Fabric& fabric, const Blocks& blocks) {
    const fabric::Topology& topology = fabric.topology();
    co_await share_inside_node(fabric, blocks, Pattern::doubling, [&](int local) {
        return std::vector{fabric.node_peers()[static_cast<std::size_t>(local)]};
    });

    // Sealed blocks of the nodes in the order in which they arrive: this rank's node, then the nodes that follow
    // it.
    const BetweenNodes between(topology, fabric.rank());
    std::vector<std::size_t> offset{0};
    for (int k = 0; k < topology.nodes(); ++k)
        offset.push_back(offset.back() +
                         fabric::sealed_bytes(blocks.bytes(topology.members(between.node_at(k)))));
    const fabric::CiphertextBuffer room = fabric.ciphertext(offset.back());
    auto sealed_blocks = [&](int first, int count) {
        const std::size_t begin = offset[static_cast<std::size_t>(first)];
        return room.part(begin, offset[static_cast<std::size_t>(first + count)] - begin);
    };
    auto open = [&](int k) {
        const Ranks ranks = topology.members(between.node_at(k));
        const fabric::PlaintextBuffer to = blocks.room(fabric, ranks);
        fabric.open(to, sealed_blocks(k, 1), {between.origin(fabric.rank(), between.node_at(k)), 0});
        blocks.unpack(fabric, ranks, to);
    };
    if (topology.nodes() > 1)
        fabric.seal(sealed_blocks(0, 1), blocks.pack(fabric, fabric.node_peers()), {fabric.rank(), 0});
    int opened = 1;
    for (int distance = 1; distance < topology.nodes(); distance *= 2) {
        const int count = between.count(distance);
        auto receiving = fabric.receive(between.source(distance), sealed_blocks(distance, count));
        std::vector<fabric::Pending> sending;
        for (int to : between.destinations(distance))
            sending.push_back(fabric.send(to, sealed_blocks(0, count)));
        for (; opened < distance; ++opened) open(opened);
        co_await receiving;
        for (auto& one : sending) co_await one;
    }
    for (; opened < topology.nodes(); ++opened) open(opened);
}

}  // namespace mpisec::coll
