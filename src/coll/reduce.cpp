#include "coll/among.hpp"
#include "coll/entries.hpp"
#include "coll/node_reduction.hpp"
#include "coll/shares.hpp"

namespace mpisec::coll {
namespace {

using fabric::Fabric;
using fabric::Task;

/// The tree's first member is `root` (an index), unless that would break the order of operands; the result
/// goes to `root` in any case.
Task by_tree(Edges& edges, Among among, Partial& mine, int root) {
    const int first = mine.reduction->commutes ? root : 0, n = among.size();
    Among tree{{}, (among.me - first + n) % n};
    for (int k = 0; k < n; ++k) tree.ranks.push_back(among.rank((first + k) % n));
    co_await reduce_to_first(edges, tree, mine);
    if (first == root) co_return;
    const std::size_t element = mine.reduction->element;
    if (among.me == first) co_await pass(edges, among.rank(root), mine.value, 0, {}, element, {});
    if (among.me == root) co_await pass(edges, 0, {}, among.rank(first), mine.value, element, [](Range) {});
}

Task by_halving(Edges& edges, Among among, Partial& mine, int root) {
    const Shares shares = shares_of_halving(among.size(), mine.value.size(), mine.reduction->element);
    co_await reduce_by_halving(edges, among, mine);
    co_await gather_shares(edges, among, mine, shares, root);
}

Task naive(Fabric& fabric, const Call& call) {
    Edges edges(fabric);
    Partial mine = partial(fabric, *call.reduction, call.data);
    co_await by_tree(edges, everybody(fabric), mine, call.root);
    if (fabric.rank() == call.root) mine.settle(call.data);
}

/// The ranks that carry a slice, by node. At the root's node slices begin with the root.
Among carriers(const Fabric& fabric, int root, int number) {
    const fabric::Topology& topology = fabric.topology();
    Among among = across_nodes(fabric, number);
    const std::vector<int>& mates = topology.members(topology.node(root));
    among.ranks[static_cast<std::size_t>(topology.node(root))] =
        mates[static_cast<std::size_t>(topology.local(root) + number) % mates.size()];
    return among;
}

template <Task (*between_nodes)(Edges&, Among, Partial&, int)>
Task in_nodes(Fabric& fabric, const Call& call, NodeReduction::Shape shape) {
    const fabric::Topology& topology = fabric.topology();
    const int root_node = topology.node(call.root);
    if (fabric.node() == root_node) shape.first = topology.local(call.root);
    Edges edges(fabric);
    NodeReduction node(fabric, *call.reduction, call.data, shape);
    for (int turn = 0; turn < node.turns(); ++turn) {
        co_await node.run(turn);
        if (node.has_slice())
            co_await between_nodes(edges, carriers(fabric, call.root, node.slice_number()), node.mine(),
                                   root_node);
        if (fabric.node() == root_node) co_await node.share_with_first();
    }
}

Task node(Fabric& fabric, const Call& call) {
    return in_nodes<by_tree>(fabric, call, {1, 1});
}
template <Task (*between_nodes)(Edges&, Among, Partial&, int)>
Task slices(Fabric& fabric, const Call& call) {
    return in_nodes<between_nodes>(
        fabric, call, {static_cast<int>(fabric.mates().size()), fabric.topology().smallest_node()});
}

}  // namespace

const std::vector<Entry>& reduce_algorithms() {
    static const std::vector<Entry> all = {{"naive", naive},
                                           {"node", node, reduces_by_node},
                                           {"slices-tree", slices<by_tree>, reduces_by_node},
                                           {"slices", slices<by_halving>, reduces_by_node}};
    return all;
}

}  // namespace mpisec::coll
