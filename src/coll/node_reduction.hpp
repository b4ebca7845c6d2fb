// The reduction among the ranks of one node, in its shared memory: ranks put their vectors there, and each
// reduces a part of all of them. The first ranks then have one slice of the node's vector each, to reduce it
// between nodes, and put the result back.
#pragma once

#include "coll/collective.hpp"
#include "coll/partial.hpp"
#include "coll/turns.hpp"
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
        int parts;      ///< reduced by as many ranks of the node: 1, or all of them
        int slices;     ///< carried between nodes by as many
        int first = 0;  ///< the rank (its place in the node) with the first part and slice; others follow
    };
    NodeReduction(fabric::Fabric& fabric, const fabric::Reduction& reduction, fabric::PlainRoom data,
                  Shape shape);

    int turns() const { return turns_; }  ///< none when there is no data
    /// After: mine() of the ranks that have a slice is that slice of what the node has for this turn.
    fabric::Task run(int turn);
    bool has_slice() const { return place_ < shape_.slices; }
    int slice_number() const { return place_; }
    Partial& mine() { return mine_; }

    /// mine() of all slices is the result: afterwards all ranks of the node have all of it in their data.
    fabric::Task share();
    /// The same for the first rank alone.
    fabric::Task share_with_first();

  private:
    Range part() const { return place_ < shape_.parts ? cut(shape_.parts) : Range{}; }
    Range own_slice() const { return has_slice() ? cut(shape_.slices) : Range{}; }
    Range cut(int pieces) const { return slice(data_.size(), reduction_.element, pieces, place_); }
    int mates() const { return static_cast<int>(fabric_.mates().size()); }
    fabric::PlainRoom vector_of(int local) const;
    fabric::PlainRoom result() const { return result_.first(data_.size()); }
    fabric::PlainRoom spare(std::size_t bytes);
    fabric::Task meet();
    fabric::PlainRoom reduce_part();

    fabric::Fabric& fabric_;
    const fabric::Reduction& reduction_;
    const fabric::PlainRoom all_data_;
    const Shape shape_;
    const int place_;  ///< among the node's ranks, counted from the first
    const int turns_;
    fabric::PlainRoom vectors_, result_;  ///< shared
    fabric::PlainRoom spare_;
    fabric::PlainRoom data_;  ///< of this turn
    Partial mine_;
    bool is_read_ = false;  ///< others may be at what this rank has put into shared memory
};

}  // namespace mpisec::coll
