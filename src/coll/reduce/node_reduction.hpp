// The reduction among the ranks of one node, in its shared memory: ranks put their vectors there, and each
// reduces a part of all of them. The first ranks then have one slice of the node's vector each, which they reduce
// between nodes before they put the result back. Two chunks may be under way at once: one between nodes, one inside.
#pragma once

#include <array>

#include "coll/collective.hpp"
#include "coll/patterns/chunks.hpp"
#include "coll/patterns/partial.hpp"
#include "fabric/task.hpp"

namespace mpisec::coll {

/// Whether operands may be combined node by node.
inline bool reduces_by_node(const fabric::Topology& topology, const Call& call) {
    return call.reduction->commutes || topology.in_rank_order();
}
inline bool reduces_in_any_order(const fabric::Topology&, const Call& call) {
    return call.reduction->commutes;
}

/// All ranks of the node make one and call the same functions of it, in the same order.
class NodeReduction {
  public:
    struct Shape {
        int parts;      ///< each reduced by one rank of the node: 1, or as many as it has ranks
        int slices;     ///< each carried between nodes by one rank of the node
        int first = 0;  ///< the rank (its place in the node) with the first part and slice; others follow
    };
    NodeReduction(fabric::Fabric& fabric, const fabric::Reduction& reduction, fabric::PlaintextBuffer data,
                  Shape shape);

    int chunks() const { return chunks_; }
    bool has_slice() const { return place_ < shape_.slices; }
    int slice_number() const { return place_; }

    /// Afterwards mine() of a rank that has a slice is that slice of what the node has for this chunk. Chunk
    /// n + 2 may run only after chunk n was shared, or is no longer needed.
    fabric::Task run(int chunk);
    Partial& mine(int chunk) { return bank(chunk).mine; }
    /// Called when mine() of all slices is the result: afterwards all ranks of the node have all of it in their data.
    fabric::Task share(int chunk);
    /// The same for the first rank alone.
    fabric::Task share_with_first(int chunk);

  private:
    /// The memory in which a chunk is worked on; every second chunk has the same.
    struct Bank {
        fabric::PlaintextBuffer vectors, result;  ///< shared
        fabric::PlaintextBuffer data, spare;      ///< the rank's own
        Partial mine;
        bool in_use = false;  ///< other ranks may be using what is shared
    };
    Bank& bank(int chunk) { return banks_[static_cast<std::size_t>(chunk % 2)]; }
    int node_peers() const { return static_cast<int>(fabric_.node_peers().size()); }
    Range cut(const Bank& bank, int pieces) const;
    Range part(const Bank& bank) const { return cut(bank, shape_.parts); }
    Range own_slice(const Bank& bank) const { return cut(bank, shape_.slices); }
    fabric::PlaintextBuffer vector_of(const Bank& bank, int local) const;
    fabric::PlaintextBuffer spare(Bank& bank, std::size_t bytes);
    fabric::PlaintextBuffer reduce_part(const Bank& bank);
    fabric::Task meet(Bank& bank);

    fabric::Fabric& fabric_;
    const fabric::Reduction& reduction_;
    const fabric::PlaintextBuffer data_;
    const Shape shape_;
    const int place_;  ///< among the node's ranks, counted from the first
    const int chunks_;
    std::array<Bank, 2> banks_;
};

/// Works on all chunks, one between nodes while the next one begins inside. `between_nodes(chunk)` starts what the rank
/// does with mine(chunk) and returns a pointer to something with a Task finish(); `share(chunk)` is the Task
/// after that.
template <class BetweenNodes, class Share>
fabric::Task interleave_chunks(NodeReduction& node, BetweenNodes between_nodes, Share share) {
    std::array<decltype(between_nodes(0)), 2> under_way;
    for (int chunk = 0; chunk <= node.chunks(); ++chunk) {
        if (chunk < node.chunks()) {
            co_await node.run(chunk);
            if (node.has_slice()) under_way[static_cast<std::size_t>(chunk % 2)] = between_nodes(chunk);
        }
        if (chunk == 0) continue;
        if (node.has_slice()) co_await under_way[static_cast<std::size_t>((chunk - 1) % 2)]->finish();
        co_await share(chunk - 1);
    }
}

}  // namespace mpisec::coll
