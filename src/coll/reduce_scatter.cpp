#include "coll/among.hpp"
#include "coll/entries.hpp"
#include "coll/node_reduction.hpp"

namespace mpisec::coll {
namespace {

using fabric::Fabric;
using fabric::PlainRoom;
using fabric::Task;

/// Everybody reduces everything: the rank's own part is then in its place.
Task naive(Fabric& fabric, const Call& call) {
    Edges edges(fabric);
    Partial mine = partial(fabric, *call.reduction, call.data);
    co_await reduce_to_all(edges, everybody(fabric), mine);
    mine.settle(call.data);
}

/// The same by nodes.
Task allreduce(Fabric& fabric, const Call& call) {
    return find_algorithm(Collective::allreduce, "node")->run(fabric, call);
}

/// The parts of all ranks, and who cares for each in a node: the rank with the same place, so that each rank
/// sends to its like in other nodes.
class Parts {
  public:
    Parts(const fabric::Topology& topology, const std::vector<std::size_t>& sizes) : topology_(topology) {
        std::size_t at = 0;
        for (std::size_t size : sizes) {
            ranges_.push_back({at, size});
            at += size;
        }
    }
    Range of(int rank) const { return ranges_[static_cast<std::size_t>(rank)]; }
    int carer(int node, int rank) const {
        return topology_.members(
            node)[static_cast<std::size_t>(topology_.local(rank) % topology_.node_size(node))];
    }

  private:
    const fabric::Topology& topology_;
    std::vector<Range> ranges_;
};

/// The vectors of the ranks of a node: the rank's own, and those of others in shared memory.
class NodeVectors {
  public:
    NodeVectors(Fabric& fabric, const Call& call, const Parts& parts)
        : fabric_(fabric), call_(call), parts_(parts) {
        if (mates() > 1) shared_ = fabric.shared_plain(call.data.size() * fabric.mates().size());
    }

    /// What others reduce. Then the ranks of the node meet.
    void publish() {
        if (mates() == 1) return;
        Range run;
        for (int rank = 0; rank < fabric_.topology().ranks(); ++rank) {
            if (parts_.carer(fabric_.node(), rank) != fabric_.rank()) {
                run.size += parts_.of(rank).size;
                continue;
            }
            publish(run);
            run = {parts_.of(rank).end(), 0};
        }
        publish(run);
    }
    /// The node's part for this rank. Overwrites this part of one of the vectors with it.
    PlainRoom reduce(int rank) {
        const std::vector<int> order = order_of_operands(call_.reduction->commutes, mates(), fabric_.local());
        const PlainRoom into = operand(order[0], rank);
        for (std::size_t k = 1; k < order.size(); ++k)
            fabric_.combine(*call_.reduction, into, operand(order[k], rank));
        return into;
    }

  private:
    int mates() const { return static_cast<int>(fabric_.mates().size()); }
    PlainRoom vector_of(int local) const {
        return shared_.subspan(static_cast<std::size_t>(local) * call_.data.size(), call_.data.size());
    }
    PlainRoom operand(int local, int rank) const {
        return parts_.of(rank).of(local == fabric_.local() ? call_.data : vector_of(local));
    }
    void publish(Range run) {
        if (run.size > 0) fabric_.copy(run.of(vector_of(fabric_.local())), run.of(call_.data));
    }

    Fabric& fabric_;
    const Call& call_;
    const Parts& parts_;
    PlainRoom shared_;
};

/// Nodes send each other what they have for each other's ranks.
Task node(Fabric& fabric, const Call& call) {
    if (call.data.empty()) co_return;
    const fabric::Topology& topology = fabric.topology();
    const int nodes = topology.nodes(), me = fabric.rank();
    const Parts parts(topology, call.from.size);
    const PlainRoom result = parts.of(me).of(call.data);
    Edges edges(fabric);

    const std::vector<int> order = order_of_operands(call.reduction->commutes, nodes, fabric.node());
    std::vector<Edges::Receiving> receiving;  // in the order of combining, without the own node's
    for (int from : order)
        if (from != fabric.node() && !result.empty())
            receiving.push_back(edges.receive(parts.carer(from, me), fabric.plain(result.size())));

    NodeVectors vectors(fabric, call, parts);
    vectors.publish();
    if (fabric.mates().size() > 1) co_await fabric.node_barrier();
    std::vector<fabric::Pending> sending;
    for (int k = 1; k < nodes; ++k)
        for (int to : topology.members((fabric.node() + k) % nodes))
            if (parts.carer(fabric.node(), to) == me && parts.of(to).size > 0)
                sending.push_back(edges.send(to, vectors.reduce(to)));

    if (!result.empty()) {
        PlainRoom into;
        auto next = receiving.begin();
        for (int from : order) {
            PlainRoom operand;
            if (from == fabric.node()) {
                operand = vectors.reduce(me);
            } else {
                operand = next->room;
                co_await edges.finish(*next++);
            }
            if (into.empty())
                into = operand;
            else
                fabric.combine(*call.reduction, into, operand);
        }
        if (into.data() != result.data()) fabric.copy(result, into);
    }
    for (auto& one : sending) co_await one;
}

}  // namespace

const std::vector<Entry>& reduce_scatter_algorithms() {
    static const std::vector<Entry> all = {
        {"naive", naive}, {"allreduce", allreduce, reduces_by_node}, {"node", node, reduces_by_node}};
    return all;
}

}  // namespace mpisec::coll
