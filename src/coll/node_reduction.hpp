// The reduction among the ranks of one node, in its shared memory: ranks put their vectors there, and each
// reduces a part of all of them. Its first ranks then have one slice of the node's vector each, to reduce it
// between nodes.
#pragma once

#include "coll/collective.hpp"
#include "coll/partial.hpp"
#include "fabric/task.hpp"

namespace mpisec::coll {

/// Operands may be combined node by node.
inline bool reduces_by_node(const fabric::Topology& topology, const Call& call) {
    return call.reduction->commutes || nodes_in_rank_order(topology);
}
inline bool reduces_in_any_order(const fabric::Topology&, const Call& call) {
    return call.reduction->commutes;
}

/// All ranks of the node make one and call the same of it, in the same order.
class NodeReduction {
  public:
    struct Shape {
        int parts;      ///< reduced by as many ranks of the node; 1, or all of them
        int slices;     ///< carried between nodes by as many
        int first = 0;  ///< the rank (its place in the node) with the first part and slice; others follow
    };
    NodeReduction(fabric::Fabric& fabric, const fabric::Reduction& reduction, fabric::PlainRoom data,
                  Shape shape);
    /// No copy: run() works on its members.
    NodeReduction(const NodeReduction&) = delete;
    NodeReduction& operator=(const NodeReduction&) = delete;

    /// After: mine() of the ranks that have a slice is that slice of the node's vector.
    fabric::Task run();
    bool has_slice() const { return place_ < shape_.slices; }
    int slice_number() const { return place_; }
    Partial& mine() { return mine_; }

    /// mine() of all slices is the result: afterwards all ranks of the node have it all in their data.
    fabric::Task share();
    /// The same for the first rank alone.
    fabric::Task share_with_first();

  private:
    Range part(int i) const { return slice(data_.size(), reduction_.element, shape_.parts, i); }
    Range slice_at(int i) const { return slice(data_.size(), reduction_.element, shape_.slices, i); }
    fabric::PlainRoom vector_of(int local) const;
    bool alone() const { return fabric_.mates().size() == 1; }
    void publish();
    fabric::PlainRoom reduce_part();

    fabric::Fabric& fabric_;
    const fabric::Reduction& reduction_;
    const fabric::PlainRoom data_;
    const Shape shape_;
    const int place_;                     ///< among the node's ranks, counted from the first
    fabric::PlainRoom vectors_, result_;  ///< shared
    Partial mine_;
};

}  // namespace mpisec::coll
