// Barrier: no rank leaves before every rank has arrived. All messages are empty; between nodes they are nevertheless
// sealed blocks, so that nobody but a rank can say that the others have arrived. p ranks, N nodes, k ranks
// in the smallest; seals and opens of the rank that has most, which are its messages between nodes.
//
//   dissemination        among all ranks. Rounds, seals, opens: ceil(lg p)
//   smp                  the ranks of each node meet, one per node disseminates, they meet again. Rounds,
//                        seals, opens: ceil(lg N)
//   n-way-dissemination  k ranks per node send to different nodes in each round (n-way dissemination:
//                        Hoefler, Mehlan, Mietke, Rehm 2006), and their node meets after it. Rounds, seals,
//                        opens: ceil(log_k+1 N)
#include "coll/entries.hpp"
#include "coll/patterns/edges.hpp"
#include "coll/patterns/nodes.hpp"

namespace mpisec::coll {
namespace {

/// Tells `to`, and is told by `from`, both on other nodes, that all ranks that this round waits for have arrived.
fabric::Task tell(fabric::Fabric& fabric, int to, int from, std::uint64_t round) {
    const fabric::CiphertextBuffer out = fabric.ciphertext(fabric::sealed_bytes(0));
    const fabric::CiphertextBuffer in = fabric.ciphertext(fabric::sealed_bytes(0));
    auto receiving = fabric.receive(from, in);
    fabric.seal(out, {}, {fabric.rank(), round});
    auto sending = fabric.send(to, out);
    co_await receiving;
    fabric.open({}, in, {from, round});
    co_await sending;
}

/// The rank with this one's place in its node, `distance` nodes further on.
int peer(const fabric::Fabric& fabric, int distance) {
    const fabric::Topology& topology = fabric.topology();
    return peer_on(topology, fabric.rank(), node_after(topology, fabric.node(), distance));
}

fabric::Task dissemination(fabric::Fabric& fabric, const Call&) {
    const int p = fabric.topology().ranks(), me = fabric.rank();
    Edges edges(fabric);
    for (int distance = 1; distance < p; distance *= 2)
        co_await edges.exchange((me + distance) % p, {}, (me - distance + p) % p, {});
}

fabric::Task barrier_smp(fabric::Fabric& fabric, const Call&) {
    const int nodes = fabric.topology().nodes();
    co_await fabric.node_barrier();
    if (nodes == 1) co_return;
    std::uint64_t round = 0;
    if (fabric.local() == 0)
        for (int distance = 1; distance < nodes; distance *= 2)
            co_await tell(fabric, peer(fabric, distance), peer(fabric, -distance), round++);
    co_await fabric.node_barrier();
}

fabric::Task n_way_dissemination(fabric::Fabric& fabric, const Call&) {
    const int nodes = fabric.topology().nodes(), ways = fabric.topology().smallest_node();
    co_await fabric.node_barrier();
    std::uint64_t round = 0;
    // The node knows of all nodes that are nearer than `known`.
    for (int known = 1; known < nodes; known *= ways + 1, ++round) {
        const int distance = known * (fabric.local() + 1);
        if (fabric.local() < ways && distance < nodes)
            co_await tell(fabric, peer(fabric, distance), peer(fabric, -distance), round);
        co_await fabric.node_barrier();
    }
}

}  // namespace

std::span<const Entry> barrier_algorithms() {
    static constexpr Entry all[] = {{"dissemination", dissemination, nullptr, "naive"},
                                    {"smp", barrier_smp, nullptr, "node"},
                                    {"n-way-dissemination", n_way_dissemination, nullptr, "ways"}};
    return all;
}

}  // namespace mpisec::coll
