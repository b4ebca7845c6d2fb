// O-RD2 (Lahijani et al. section IV.B): as O-RD, but each round opens what arrived and seals all that the rank
// has as one sealed block: lg N openings instead of N - 1, for more bytes sealed.
#include "coll/allgather/allgather.hpp"
#include "coll/allgather/between_nodes.hpp"
#include "coll/allgather/inside_node.hpp"

namespace mpisec::coll {

fabric::Task allgather_o_rd2(fabric::Fabric& fabric, const Blocks& blocks) {
    const fabric::Topology& topology = fabric.topology();
    co_await share_inside_node(fabric, blocks, Pattern::doubling, [&](int local) {
        return std::vector{fabric.node_peers()[static_cast<std::size_t>(local)]};
    });

    const BetweenNodes between(topology, fabric.rank());
    auto ranks_of = [&](int first, int count) {
        std::vector<int> ranks;
        for (int k = first; k < first + count; ++k) {
            const Ranks members = topology.members(between.node_at(k));
            ranks.insert(ranks.end(), members.begin(), members.end());
        }
        return ranks;
    };
    std::uint64_t round = 0;
    for (int distance = 1; distance < topology.nodes(); distance *= 2, ++round) {
        const int count = between.count(distance);
        const std::vector<int> in = ranks_of(distance, count), out = ranks_of(0, count),
                               destinations = between.destinations(distance);
        const fabric::CiphertextBuffer in_sealed_block =
            fabric.ciphertext(fabric::sealed_bytes(blocks.bytes(in)));
        auto receiving = fabric.receive(between.source(distance), in_sealed_block);
        std::vector<fabric::Pending> sending;
        if (!destinations.empty()) {
            const fabric::Plaintext mine = blocks.pack(fabric, out);
            const fabric::CiphertextBuffer out_sealed_block =
                fabric.ciphertext(fabric::sealed_bytes(mine.size()));
            fabric.seal(out_sealed_block, mine, {fabric.rank(), round});
            for (int to : destinations) sending.push_back(fabric.send(to, out_sealed_block));
        }
        co_await receiving;
        const fabric::PlaintextBuffer to = blocks.room(fabric, in);
        fabric.open(to, in_sealed_block, {between.source(distance), round});
        blocks.unpack(fabric, in, to);
        for (auto& one : sending) co_await one;
    }
}

}  // namespace mpisec::coll
