// O-Ring (Lahijani et al. section IV.B): a ring in the order of nodes, so that each node has one way in and
// one way out, whatever the placement (the rank-ordered ring of Kandalla et al. 2009). Plaintext travels within
// a node; the rank at the way out seals each block, the rank at the way in opens it. A rank that is
// alone on its node hands ciphertext on as it arrived.
#include "coll/allgather/allgather.hpp"

namespace mpisec::coll {
namespace {

struct Ring {
    explicit Ring(const fabric::Topology& of) : topology(of) {
        for (int node = 0; node < of.nodes(); ++node)
            order.insert(order.end(), of.members(node).begin(), of.members(node).end());
    }
    int at(int place) const {
        const int n = static_cast<int>(order.size());
        return order[static_cast<std::size_t>((place % n + n) % n)];
    }
    bool crosses(int place) const {
        return !topology.same_node(at(place), at(place + 1));
    }  ///< from this place to the next
    /// The place whose rank sealed the block of `origin` (a place) that the rank at `place` sends on to another node.
    int sealer(int origin, int place) const {
        while (place != origin && crosses(place - 1)) --place;
        return place;
    }

    const fabric::Topology& topology;
    std::vector<int> order;
};

}  // namespace

fabric::Task allgather_o_ring(fabric::Fabric& fabric, const Blocks& blocks) {
    const Ring ring(fabric.topology());
    const int p = fabric.topology().ranks();
    int me = 0;
    while (ring.at(me) != fabric.rank()) ++me;
    const bool in_crosses = ring.crosses(me - 1), out_crosses = ring.crosses(me);

    fabric::CiphertextBuffer held;  // the block to send on, if it is sealed already
    fabric::PlaintextBuffer late_room;
    fabric::CiphertextBuffer late_sealed_block;
    fabric::SealedBlock late{};
    bool is_late = false;  // a block that is opened while the next one travels
    for (int step = 1; step < p; ++step) {
        const int sent = me - step + 1, received = me - step;  // places whose blocks these are
        const fabric::PlaintextBuffer out = blocks.of(ring.at(sent)), in = blocks.of(ring.at(received));
        const fabric::CiphertextBuffer in_sealed_block =
            in_crosses ? fabric.ciphertext(fabric::sealed_bytes(in.size())) : fabric::CiphertextBuffer();
        auto receiving = in_crosses ? fabric.receive(ring.at(me - 1), in_sealed_block)
                                    : fabric.receive_here(ring.at(me - 1), in);
        if (out_crosses && (step == 1 || !in_crosses)) {
            held = fabric.ciphertext(fabric::sealed_bytes(out.size()));
            fabric.seal(held, out, {fabric.rank(), static_cast<std::uint64_t>(ring.at(sent))});
        }
        auto sending =
            out_crosses ? fabric.send(ring.at(me + 1), held) : fabric.send_here(ring.at(me + 1), out);
        if (is_late) fabric.open(late_room, late_sealed_block, late);
        co_await receiving;
        co_await sending;
        is_late = in_crosses && out_crosses;
        if (!in_crosses) continue;
        held = in_sealed_block;
        // Neither place is wrapped around the ring: the walk back from me - 1 meets `received`.
        late = {ring.at(ring.sealer(received, me - 1)), static_cast<std::uint64_t>(ring.at(received))};
        late_room = in, late_sealed_block = in_sealed_block;
        if (!is_late) fabric.open(in, in_sealed_block, late);
    }
    if (is_late) fabric.open(late_room, late_sealed_block, late);
}

}  // namespace mpisec::coll
