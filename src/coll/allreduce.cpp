#include "coll/among.hpp"
#include "coll/entries.hpp"
#include "coll/node_reduction.hpp"
#include "coll/shares.hpp"

namespace mpisec::coll {
namespace {

using fabric::Fabric;
using fabric::PlainRoom;
using fabric::Task;

Task naive(Fabric& fabric, const Call& call) {
    Edges edges(fabric);
    Partial mine = partial(fabric, *call.reduction, call.data);
    co_await reduce_to_all(edges, everybody(fabric), mine);
    mine.settle(call.data);
}

Task by_doubling(Edges& edges, Among among, Partial& mine, std::uint32_t) {
    return reduce_to_all(edges, std::move(among), mine);
}
Task by_halving(Edges& edges, Among among, Partial& mine, std::uint32_t turn) {
    const Shares shares = shares_of_halving(among.size(), mine.value.size(), mine.reduction->element);
    co_await reduce_by_halving(edges, among, mine);
    co_await spread_shares(*mine.fabric, among, mine, shares, Spread::doubling, turn);
}
Task by_ring(Edges& edges, Among among, Partial& mine, std::uint32_t turn) {
    const Shares shares = shares_of_ring(among.size(), mine.value.size(), mine.reduction->element);
    co_await reduce_by_ring(edges, among, mine);
    co_await spread_shares(*mine.fabric, among, mine, shares, Spread::ring, turn);
}

template <Task (*between_nodes)(Edges&, Among, Partial&, std::uint32_t)>
Task in_nodes(Fabric& fabric, const Call& call, NodeReduction::Shape shape) {
    Edges edges(fabric);
    NodeReduction node(fabric, *call.reduction, call.data, shape);
    for (int turn = 0; turn < node.turns(); ++turn) {
        co_await node.run(turn);
        if (node.has_slice())
            co_await between_nodes(edges, across_nodes(fabric, node.slice_number()), node.mine(),
                                   static_cast<std::uint32_t>(turn));
        co_await node.share();
    }
}

Task node(Fabric& fabric, const Call& call) {
    return in_nodes<by_doubling>(fabric, call, {1, 1});
}
template <Task (*between_nodes)(Edges&, Among, Partial&, std::uint32_t)>
Task slices(Fabric& fabric, const Call& call) {
    return in_nodes<between_nodes>(
        fabric, call, {static_cast<int>(fabric.mates().size()), fabric.topology().smallest_node()});
}

/// Every rank reduces all vectors of its node, all in the same order, and goes on between nodes with its
/// likes: the ranks of a node need not meet again.
Task concurrent(Fabric& fabric, const Call& call) {
    if (call.data.empty()) co_return;
    const std::size_t bytes = call.data.size();
    const int mates = static_cast<int>(fabric.mates().size()), local = fabric.local();
    Edges edges(fabric);
    const PlainRoom vectors = fabric.shared_plain(bytes * fabric.mates().size());
    auto vector_of = [&](int mate) { return vectors.subspan(static_cast<std::size_t>(mate) * bytes, bytes); };
    fabric.copy(vector_of(local), call.data);
    co_await fabric.node_barrier();
    if (local < mates - 1) fabric.copy(call.data, vector_of(mates - 1));
    for (int mate = mates - 2; mate >= 0; --mate) fabric.combine(*call.reduction, call.data, vector_of(mate));
    Partial mine = partial(fabric, *call.reduction, call.data);
    co_await reduce_to_all(edges, across_nodes(fabric, local), mine);
    mine.settle(call.data);
}

bool suits_concurrent(const fabric::Topology& topology, const Call& call) {
    return reduces_by_node(topology, call) && topology.smallest_node() * topology.nodes() == topology.ranks();
}

}  // namespace

const std::vector<Entry>& allreduce_algorithms() {
    static const std::vector<Entry> all = {{"naive", naive},
                                           {"node", node, reduces_by_node},
                                           {"concurrent", concurrent, suits_concurrent},
                                           {"slices-rd", slices<by_doubling>, reduces_by_node},
                                           {"slices-rsa", slices<by_halving>, reduces_by_node},
                                           {"slices-ring", slices<by_ring>, reduces_in_any_order}};
    return all;
}

}  // namespace mpisec::coll
