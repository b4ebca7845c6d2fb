// All-to-all: a block of m bytes from each of p ranks to each, on N nodes of k.
//
//   pairwise-blocking  pairwise exchange, a sealed block for each block that leaves its node. Rounds p - 1,
//                      bytes m (p - 1), seals and opens p - k
//   pipeline           the same, long blocks in segments, sealed and opened while others travel
//   pairwise           the same, with a round's sealed blocks opened while the next travel
//   smp                a rank sends what it has for a node in one sealed block, to the rank there with its
//                      own place, which opens it into shared memory. Rounds, seals and opens N - 1,
//                      bytes m (p - k)
//   pairs              one sealed block from node to node, sealed and opened by one rank of each; both sides
//                      through shared memory. Rounds, seals and opens ceil((N - 1) / k), bytes m k k for each
//   bruck              lanes, one per rank of a node; in round i all data whose way, counted in nodes, has 2^i in
//                      it goes in one sealed block, which is opened and sealed anew (Bruck, Ho, Kipnis, Upfal,
//                      Weathersby 1997). Rounds, seals and opens ceil(lg N), bytes m p lg N / 2; blocks must
//                      be equal
#include "coll/alltoall/alltoall_nodes.hpp"
#include "coll/entries.hpp"
#include "coll/patterns/edges.hpp"
#include "coll/patterns/rounds.hpp"
#include "coll/patterns/segments.hpp"

namespace mpisec::coll {
namespace {

/// Runs one exchange after the other: `exchange` (edges, to, what, from, where) is a task.
template <class Exchange>
fabric::Task one_by_one(fabric::Fabric& fabric, const Call& call, Exchange exchange) {
    const int p = fabric.topology().ranks(), me = fabric.rank();
    Edges edges(fabric);
    for (int step = 1; step < p; ++step) {
        const int to = (me + step) % p, from = (me - step + p) % p;
        co_await exchange(edges, to, call.to.of(to), from, call.from.of(from));
    }
}

fabric::Task pairwise_blocking(fabric::Fabric& fabric, const Call& call) {
    return one_by_one(fabric, call,
                      [](Edges& edges, int to, fabric::Plaintext out, int from, fabric::PlaintextBuffer in) {
                          return edges.exchange(to, out, from, in);
                      });
}

fabric::Task pipeline(fabric::Fabric& fabric, const Call& call) {
    return one_by_one(fabric, call, exchange_segments);
}

fabric::Task pairwise(fabric::Fabric& fabric, const Call& call) {
    const int p = fabric.topology().ranks(), me = fabric.rank();
    co_await in_rounds(fabric, p - 1, [&](int i) {
        const int to = (me + i + 1) % p, from = (me - i - 1 + p) % p;
        return Round{{{to, call.to.of(to), static_cast<std::uint64_t>(to)}},
                     {{from, call.from.of(from), static_cast<std::uint64_t>(me)}}};
    });
}

bool equal_blocks_only(const fabric::Topology&, const Call& call) {
    return call.equal_blocks;
}

}  // namespace

std::span<const Entry> alltoall_algorithms() {
    static constexpr Entry all[] = {{"pairwise-blocking", pairwise_blocking, nullptr, "naive", true},
                                    {"pipeline", pipeline, nullptr, {}, true},
                                    {"pairwise", pairwise, nullptr, {}, true},
                                    {"smp", alltoall_node, nullptr, "node"},
                                    {"pairs", alltoall_pairs},
                                    {"bruck", alltoall_bruck, equal_blocks_only}};
    return all;
}

}  // namespace mpisec::coll
