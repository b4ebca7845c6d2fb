#include "coll/among.hpp"
#include "coll/entries.hpp"

namespace mpisec::coll {
namespace {

using fabric::Fabric;
using fabric::PlainRoom;
using fabric::Task;

Task scan_naive(Fabric& fabric, const Call& call) {
    Edges edges(fabric);
    Partial mine = partial(fabric, *call.reduction, call.data);
    co_await prefix(edges, everybody(fabric), mine);
}

Task exscan_naive(Fabric& fabric, const Call& call) {
    Edges edges(fabric);
    Partial mine = partial(fabric, *call.reduction, call.data);
    const PlainRoom before = fabric.plain(call.data.size());
    co_await prefix_before(edges, everybody(fabric), mine, before);
    if (fabric.rank() > 0) fabric.copy(call.data, before);
}

/// What the ranks of a node share: their vectors, which become their prefixes within the node, and in front
/// of them what all lower nodes have.
class NodePrefixes {
  public:
    NodePrefixes(Fabric& fabric, const Call& call)
        : fabric_(fabric), bytes_(call.data.size()), vectors_(fabric.shared_plain((mates() + 1) * bytes_)) {}

    std::size_t mates() const { return fabric_.mates().size(); }
    PlainRoom before() const { return vectors_.first(bytes_); }
    PlainRoom of(int local) const {
        return vectors_.subspan(static_cast<std::size_t>(local + 1) * bytes_, bytes_);
    }
    PlainRoom whole_node() const { return vectors_.last(bytes_); }

  private:
    Fabric& fabric_;
    std::size_t bytes_;
    PlainRoom vectors_;
};

/// One slice of what all lower nodes have, from the slices of the nodes.
Task before_node(Fabric& fabric, const Call& call, const NodePrefixes& node, int number, int slices) {
    Edges edges(fabric);
    const Range own = slice(call.data.size(), call.reduction->element, slices, number);
    Partial nodes = partial(fabric, *call.reduction, fabric.plain(own.size));
    const bool sends = fabric.node() + 1 < fabric.topology().nodes();
    if (sends && own.size > 0) fabric.copy(nodes.value, own.of(node.whole_node()));
    co_await prefix_before(edges, across_nodes(fabric, number), nodes, own.of(node.before()));
}

Task in_nodes(Fabric& fabric, const Call& call, int parts, int slices, bool inclusive) {
    if (call.data.empty()) co_return;
    const fabric::Reduction& reduction = *call.reduction;
    const int local = fabric.local(), mates = static_cast<int>(fabric.mates().size());
    const NodePrefixes node(fabric, call);
    fabric.copy(node.of(local), call.data);
    co_await fabric.node_barrier();
    if (local < parts) {
        const Range own = slice(call.data.size(), reduction.element, parts, local);
        for (int mate = 1; mate < mates && own.size > 0; ++mate)
            fabric.combine(reduction, own.of(node.of(mate)), own.of(node.of(mate - 1)));
    }
    if (parts != slices) co_await fabric.node_barrier();
    if (local < slices) co_await before_node(fabric, call, node, local, slices);
    co_await fabric.node_barrier();

    const bool first_node = fabric.node() == 0;
    if (!inclusive && local == 0) {
        if (!first_node) fabric.copy(call.data, node.before());
        co_return;
    }
    fabric.copy(call.data, node.of(inclusive ? local : local - 1));
    if (!first_node) fabric.combine(reduction, call.data, node.before());
}

template <bool inclusive>
Task node(Fabric& fabric, const Call& call) {
    return in_nodes(fabric, call, 1, 1, inclusive);
}
template <bool inclusive>
Task slices(Fabric& fabric, const Call& call) {
    return in_nodes(fabric, call, static_cast<int>(fabric.mates().size()), fabric.topology().smallest_node(),
                    inclusive);
}

bool suits(const fabric::Topology& topology, const Call&) {
    return nodes_in_rank_order(topology);
}

}  // namespace

const std::vector<Entry>& scan_algorithms() {
    static const std::vector<Entry> all = {
        {"naive", scan_naive}, {"node", node<true>, suits}, {"slices", slices<true>, suits}};
    return all;
}

const std::vector<Entry>& exscan_algorithms() {
    static const std::vector<Entry> all = {
        {"naive", exscan_naive}, {"node", node<false>, suits}, {"slices", slices<false>, suits}};
    return all;
}

}  // namespace mpisec::coll
