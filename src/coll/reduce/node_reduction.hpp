// The reduction among the ranks of one node, in its shared memory: ranks put their vectors there, and each
// reduces a part of all of them. The first ranks then have one slice of the node's vector each, to reduce it
// between nodes, and put the result back. Two turns may be under way at once: one between nodes, one inside.
#pragma once

#include <array>

#include "coll/collective.hpp"
#include "coll/patterns/partial.hpp"
#include "coll/patterns/turns.hpp"
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

    int turns() const { return turns_; }
    bool has_slice() const { return place_ < shape_.slices; }
    int slice_number() const { return place_; }

    /// After: mine() of the ranks that have a slice is that slice of what the node has for this turn. Turn
    /// n + 2 runs after turn n was shared, or was finished with.
    fabric::Task run(int turn);
    Partial& mine(int turn) { return bank(turn).mine; }
    /// mine() of all slices is the result: afterwards all ranks of the node have all of it in their data.
    fabric::Task share(int turn);
    /// The same for the first rank alone.
    fabric::Task share_with_first(int turn);

  private:
    /// What a turn works on; every second turn has the same.
    struct Bank {
        fabric::PlainRoom vectors, result;  ///< shared
        fabric::PlainRoom data, spare;      ///< the rank's own
        Partial mine;
        bool in_use = false;  ///< others may be at what is shared
    };
    Bank& bank(int turn) { return banks_[static_cast<std::size_t>(turn % 2)]; }
    int mates() const { return static_cast<int>(fabric_.mates().size()); }
    Range cut(const Bank& bank, int pieces) const;
    Range part(const Bank& bank) const { return cut(bank, shape_.parts); }
    Range own_slice(const Bank& bank) const { return cut(bank, shape_.slices); }
    fabric::PlainRoom vector_of(const Bank& bank, int local) const;
    fabric::PlainRoom spare(Bank& bank, std::size_t bytes);
    fabric::PlainRoom reduce_part(const Bank& bank);
    fabric::Task meet(Bank& bank);

    fabric::Fabric& fabric_;
    const fabric::Reduction& reduction_;
    const fabric::PlainRoom data_;
    const Shape shape_;
    const int place_;  ///< among the node's ranks, counted from the first
    const int turns_;
    std::array<Bank, 2> banks_;
};

/// All turns, one between nodes while the next one begins inside. `between_nodes(turn)` starts what the rank
/// does with mine(turn) and gives a pointer to something with a Task finish(); `share(turn)` is the Task
/// after that.
template <class BetweenNodes, class Share>
fabric::Task in_turns(NodeReduction& node, BetweenNodes between_nodes, Share share) {
    std::array<decltype(between_nodes(0)), 2> under_way;
    for (int turn = 0; turn <= node.turns(); ++turn) {
        if (turn < node.turns()) {
            co_await node.run(turn);
            if (node.has_slice()) under_way[static_cast<std::size_t>(turn % 2)] = between_nodes(turn);
        }
        if (turn == 0) continue;
        if (node.has_slice()) co_await under_way[static_cast<std::size_t>((turn - 1) % 2)]->finish();
        co_await share(turn - 1);
    }
}

}  // namespace mpisec::coll
