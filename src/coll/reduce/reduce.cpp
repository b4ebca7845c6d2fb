// Reduce. N = 2^k nodes of l ranks, m bytes, the busiest rank (the root); bytes are those opened.
//
//                                                      rounds      bytes          seals     opens
//   binomial      binomial tree over all ranks         lg p        m lg N         1         lg N
//   smp           shared memory; leaders' tree         lg N        m lg N         1         lg N
//   multi-leader  every rank reduces a slice; a tree   lg N        m/l lg N       1         lg N
//   rabenseifner  ... halves, the root's node gathers  lg N + N-1  2 m/l (N-1)/N  lg N + 1  lg N + N-1
#include <memory>

#include "coll/entries.hpp"
#include "coll/patterns/schedule.hpp"
#include "coll/patterns/shares.hpp"
#include "coll/reduce/node_reduction.hpp"

namespace mpisec::coll {
namespace {

using fabric::Fabric;
using fabric::Task;

/// The tree's first member is `root` (an index), unless that would break the order of operands; the result
/// goes to `root` in any case.
Schedule tree_to(int root, const Members& members, std::size_t bytes, bool commutes) {
    const int first = commutes ? root : 0;
    Schedule steps = tree(members.from(first), bytes);
    if (first == root) return steps;
    const Range all{0, bytes};
    if (members.me() == first) steps.push_back(Step::send(members.rank(root), all));
    if (members.me() == root) steps.push_back(Step::receive(members.rank(first), all, Step::What::result));
    return steps;
}

Task reduce_binomial(Fabric& fabric, const Call& call) {
    Edges edges(fabric);
    Partial mine = partial(fabric, *call.reduction, call.data);
    const auto all = Members::everybody(fabric);
    co_await Reducing(edges, mine, tree_to(call.root, all, call.data.size(), call.reduction->commutes))
        .finish();
    if (fabric.rank() == call.root) mine.settle(call.data);
}

enum class ReducePattern { tree, halving };

/// One chunk of one slice between nodes.
class ReduceBetweenNodes {
  public:
    ReduceBetweenNodes(Edges& edges, Members members, Partial& mine, ReducePattern pattern, int root)
        : edges_(edges),
          members_(members),
          mine_(mine),
          pattern_(pattern),
          root_(root),
          reducing_(edges, mine, schedule()) {
        if (pattern_ != ReducePattern::halving || begins_alike(members_)) reducing_.begin();
    }
    Task finish() {
        co_await reducing_.finish();
        if (pattern_ == ReducePattern::halving)
            co_await gather_shares(edges_, members_, mine_,
                                   shares_of_halving(members_, mine_.value.size(), mine_.reduction->element),
                                   root_);
    }

  private:
    Schedule schedule() const {
        const std::size_t bytes = mine_.value.size();
        if (pattern_ == ReducePattern::halving)
            return recursive_halving(members_, bytes, mine_.reduction->element);
        return tree_to(root_, members_, bytes, mine_.reduction->commutes);
    }

    Edges& edges_;
    const Members members_;
    Partial& mine_;
    const ReducePattern pattern_;
    const int root_;  ///< index of the root's node
    Reducing reducing_;
};

/// The ranks that carry a slice, by node. At the root's node slices begin with the root.
Members carriers(const Fabric& fabric, int root, int number) {
    const fabric::Topology& topology = fabric.topology();
    const int node = topology.node(root);
    const int carrier = topology.members(
        node)[static_cast<std::size_t>((topology.local(root) + number) % topology.node_size(node))];
    return Members::across_nodes(fabric, number).with(node, carrier);
}

Task reduce_in_nodes(Fabric& fabric, const Call& call, NodeReduction::Shape shape, ReducePattern pattern) {
    const fabric::Topology& topology = fabric.topology();
    const int root_node = topology.node(call.root);
    if (fabric.node() == root_node) shape.first = topology.local(call.root);
    Edges edges(fabric);
    NodeReduction node(fabric, *call.reduction, call.data, shape);
    auto between_nodes = [&](int chunk) {
        const Members members = carriers(fabric, call.root, node.slice_number());
        return std::make_unique<ReduceBetweenNodes>(edges, members, node.mine(chunk), pattern, root_node);
    };
    co_await interleave_chunks(node, between_nodes, [&](int chunk) {
        return fabric.node() == root_node ? node.share_with_first(chunk) : Task();
    });
}

Task reduce_smp(Fabric& fabric, const Call& call) {
    return reduce_in_nodes(fabric, call, {1, 1}, ReducePattern::tree);
}
template <ReducePattern pattern>
Task reduce_slices(Fabric& fabric, const Call& call) {
    const int node_peers = static_cast<int>(fabric.node_peers().size());
    return reduce_in_nodes(fabric, call, {node_peers, fabric.topology().smallest_node()}, pattern);
}

/// Between two nodes the root receives as much as in a tree, in two messages one after the other.
bool suits_halving(const fabric::Topology& topology, const Call& call) {
    return reduces_by_node(topology, call) && topology.nodes() != 2;
}

}  // namespace

std::span<const Entry> reduce_algorithms() {
    static constexpr Entry all[] = {
        {"binomial", reduce_binomial, nullptr, "naive"},
        {"smp", reduce_smp, reduces_by_node, "node"},
        {"multi-leader", reduce_slices<ReducePattern::tree>, reduces_by_node, "slices-tree"},
        {"rabenseifner", reduce_slices<ReducePattern::halving>, suits_halving, "slices-rsg"}};
    return all;
}

}  // namespace mpisec::coll
