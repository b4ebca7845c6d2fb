// All-reduce. N = 2^k nodes of l ranks, m bytes, the busiest rank; the last three follow Gavahi et al.,
// Encrypted all-reduce on multi-core clusters, IPCCC 2021. Bytes are those opened.
//
//                                                            rounds   bytes          seals     opens
//   recursive-doubling  over all ranks                       lg p     m lg N         lg N      lg N
//   smp                 shared memory; leaders double        lg N     m lg N         lg N      lg N
//   concurrent          each reduces all that its node has   lg N     m lg N         lg N      lg N
//   multi-leader        each reduces a slice, doubles it     lg N     m/l lg N       lg N      lg N
//   rabenseifner        ... halves, hands shares on sealed   2 lg N   2 m/l (N-1)/N  lg N + 1  lg N + N-1
//   ring                ... the same in rings; any N alike   2 (N-1)  2 m/l (N-1)/N  N         2 (N-1)
#include <memory>

#include "coll/entries.hpp"
#include "coll/patterns/schedule.hpp"
#include "coll/patterns/shares.hpp"
#include "coll/reduce/node_reduction.hpp"

namespace mpisec::coll {
namespace {

using fabric::Fabric;
using fabric::PlaintextBuffer;
using fabric::Task;

Task allreduce_recursive_doubling(Fabric& fabric, const Call& call) {
    Edges edges(fabric);
    Partial mine = partial(fabric, *call.reduction, call.data);
    co_await Reducing(edges, mine, recursive_doubling(Members::everybody(fabric), call.data.size())).finish();
    mine.settle(call.data);
}

enum class AllreducePattern { doubling, halving, ring };

/// One chunk of one slice between nodes.
class AllreduceBetweenNodes {
  public:
    AllreduceBetweenNodes(Edges& edges, Members members, Partial& mine, AllreducePattern pattern, int chunk)
        : members_(members),
          mine_(mine),
          pattern_(pattern),
          chunk_(static_cast<std::uint64_t>(chunk)),
          reducing_(edges, mine, schedule()) {
        if (pattern_ != AllreducePattern::halving || begins_alike(members_)) reducing_.begin();
    }
    Task finish() {
        co_await reducing_.finish();
        const std::size_t bytes = mine_.value.size(), element = mine_.reduction->element;
        if (pattern_ == AllreducePattern::halving)
            co_await spread_shares(members_, mine_, shares_of_halving(members_, bytes, element),
                                   Spread::doubling, chunk_);
        if (pattern_ == AllreducePattern::ring)
            co_await spread_shares(members_, mine_, shares_of_ring(members_, bytes, element), Spread::ring,
                                   chunk_);
    }

  private:
    Schedule schedule() const {
        const std::size_t bytes = mine_.value.size(), element = mine_.reduction->element;
        if (pattern_ == AllreducePattern::halving) return recursive_halving(members_, bytes, element);
        if (pattern_ == AllreducePattern::ring) return reducing_ring(members_, bytes, element);
        return recursive_doubling(members_, bytes);
    }

    const Members members_;
    Partial& mine_;
    const AllreducePattern pattern_;
    const std::uint64_t chunk_;
    Reducing reducing_;
};

Task allreduce_in_nodes(Fabric& fabric, const Call& call, NodeReduction::Shape shape,
                        AllreducePattern pattern) {
    Edges edges(fabric);
    NodeReduction node(fabric, *call.reduction, call.data, shape);
    auto between_nodes = [&](int chunk) {
        const auto members = Members::across_nodes(fabric, node.slice_number());
        return std::make_unique<AllreduceBetweenNodes>(edges, members, node.mine(chunk), pattern, chunk);
    };
    co_await interleave_chunks(node, between_nodes, [&](int chunk) { return node.share(chunk); });
}

Task allreduce_smp(Fabric& fabric, const Call& call) {
    return allreduce_in_nodes(fabric, call, {1, 1}, AllreducePattern::doubling);
}
template <AllreducePattern pattern>
Task allreduce_slices(Fabric& fabric, const Call& call) {
    const int node_peers = static_cast<int>(fabric.node_peers().size());
    return allreduce_in_nodes(fabric, call, {node_peers, fabric.topology().smallest_node()}, pattern);
}

/// Every rank reduces all vectors of its node, all in the same order, and goes on between nodes with the ranks of the
/// same place: the ranks of a node need not meet again.
Task concurrent(Fabric& fabric, const Call& call) {
    if (call.data.empty()) co_return;
    const std::size_t bytes = call.data.size();
    const int node_peers = static_cast<int>(fabric.node_peers().size()), local = fabric.local();
    Edges edges(fabric);
    const PlaintextBuffer vectors = fabric.shared_plaintext(bytes * fabric.node_peers().size());
    auto vector_of = [&](int node_peer) {
        return vectors.subspan(static_cast<std::size_t>(node_peer) * bytes, bytes);
    };
    fabric.copy(vector_of(local), call.data);
    co_await fabric.node_barrier();
    if (local < node_peers - 1) fabric.copy(call.data, vector_of(node_peers - 1));
    for (int node_peer = node_peers - 2; node_peer >= 0; --node_peer)
        fabric.combine(*call.reduction, call.data, vector_of(node_peer));
    Partial mine = partial(fabric, *call.reduction, call.data);
    co_await Reducing(edges, mine, recursive_doubling(Members::across_nodes(fabric, local), bytes)).finish();
    mine.settle(call.data);
}

bool suits_concurrent(const fabric::Topology& topology, const Call& call) {
    return reduces_by_node(topology, call) && call.data.size() <= chunk_bytes &&
           topology.smallest_node() * topology.nodes() == topology.ranks();
}

}  // namespace

std::span<const Entry> allreduce_algorithms() {
    static constexpr Entry all[] = {
        {"recursive-doubling", allreduce_recursive_doubling, nullptr, "naive"},
        {"smp", allreduce_smp, reduces_by_node, "node"},
        {"concurrent", concurrent, suits_concurrent},
        {"multi-leader", allreduce_slices<AllreducePattern::doubling>, reduces_by_node, "slices-rd"},
        {"rabenseifner", allreduce_slices<AllreducePattern::halving>, reduces_by_node, "slices-rsa"},
        {"ring", allreduce_slices<AllreducePattern::ring>, reduces_in_any_order, "slices-ring"}};
    return all;
}

}  // namespace mpisec::coll
