#include "coll/among.hpp"
#include "coll/entries.hpp"
#include "coll/node_reduction.hpp"
#include "coll/shares.hpp"

namespace mpisec::coll {
namespace {

using fabric::Fabric;
using fabric::Task;

Task naive(Fabric& fabric, const Call& call) {
    Edges edges(fabric);
    Partial mine = partial(fabric, *call.reduction, call.data);
    co_await reduce_to_all(edges, everybody(fabric), mine);
    mine.settle(call.data);
}

Task by_doubling(Edges& edges, Among among, Partial& mine) {
    return reduce_to_all(edges, std::move(among), mine);
}
Task by_halving(Edges& edges, Among among, Partial& mine) {
    const Shares shares = shares_of_halving(among.size(), mine.value.size(), mine.reduction->element);
    co_await reduce_by_halving(edges, among, mine);
    co_await spread_shares(*mine.fabric, among, mine, shares, Spread::doubling);
}
Task by_ring(Edges& edges, Among among, Partial& mine) {
    const Shares shares = shares_of_ring(among.size(), mine.value.size(), mine.reduction->element);
    co_await reduce_by_ring(edges, among, mine);
    co_await spread_shares(*mine.fabric, among, mine, shares, Spread::ring);
}

template <Task (*between_nodes)(Edges&, Among, Partial&)>
Task in_nodes(Fabric& fabric, const Call& call, NodeReduction::Shape shape) {
    if (call.data.empty()) co_return;
    Edges edges(fabric);
    NodeReduction node(fabric, *call.reduction, call.data, shape);
    co_await node.run();
    if (node.has_slice() && !node.mine().value.empty())
        co_await between_nodes(edges, across_nodes(fabric, node.slice_number()), node.mine());
    co_await node.share();
}

Task node(Fabric& fabric, const Call& call) {
    return in_nodes<by_doubling>(fabric, call, {1, 1});
}
template <Task (*between_nodes)(Edges&, Among, Partial&)>
Task slices(Fabric& fabric, const Call& call) {
    return in_nodes<between_nodes>(
        fabric, call, {static_cast<int>(fabric.mates().size()), fabric.topology().smallest_node()});
}

}  // namespace

const std::vector<Entry>& allreduce_algorithms() {
    static const std::vector<Entry> all = {{"naive", naive},
                                           {"node", node, reduces_by_node},
                                           {"slices-rd", slices<by_doubling>, reduces_by_node},
                                           {"slices-rsa", slices<by_halving>, reduces_by_node},
                                           {"slices-ring", slices<by_ring>, reduces_in_any_order}};
    return all;
}

}  // namespace mpisec::coll
