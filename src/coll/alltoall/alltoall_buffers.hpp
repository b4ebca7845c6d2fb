// What leaves and what enters a node in an all-to-all, in its shared memory.
#pragma once

#include <optional>
#include <vector>

#include "coll/collective.hpp"

namespace mpisec::coll {

/// All blocks for the ranks of this node, in the order of source node, source, destination.
class Arrivals {
  public:
    /// Made by all ranks of the node together.
    fabric::Task make(fabric::Fabric& fabric, const Call& call);

    /// The blocks from one rank, for all ranks of this node.
    fabric::PlaintextBuffer row(int source) const { return cells(source, source); }
    /// The blocks from all ranks of another node.
    fabric::PlaintextBuffer of_node(const fabric::Topology& topology, int node) const {
        return cells(topology.members(node).front(), topology.members(node).back());
    }
    /// Puts this rank's own blocks for the others of its node there.
    void put(fabric::Fabric& fabric, const Call& call) const;
    /// When all blocks are there: takes this rank's blocks from the others.
    void take(fabric::Fabric& fabric, const Call& call) const;

  private:
    std::size_t cell(int source, std::size_t local) const {
        return static_cast<std::size_t>(topology_->place(source)) * node_peers_ + local;
    }
    fabric::PlaintextBuffer block(int source, std::size_t local) const {
        return room_.subspan(offset(cell(source, local)), bytes(cell(source, local)));
    }
    fabric::PlaintextBuffer cells(int first, int last) const {
        const std::size_t begin = cell(first, 0), end = cell(last, node_peers_ - 1);
        return room_.subspan(offset(begin), offset(end) + bytes(end) - offset(begin));
    }
    std::size_t offset(std::size_t cell) const { return each_ ? *each_ * cell : offset_[cell]; }
    std::size_t bytes(std::size_t cell) const { return each_ ? *each_ : size_[cell]; }

    const fabric::Topology* topology_ = nullptr;
    fabric::PlaintextBuffer room_;
    std::size_t node_peers_ = 0;
    std::optional<std::size_t> each_;         ///< bytes of each block, if all have one size
    std::vector<std::size_t> offset_, size_;  ///< by cell(); empty when all blocks have one size
};

/// All blocks of this node's ranks for other nodes, in the order of destination node, source, destination.
class Departures {
  public:
    /// Made by all ranks of the node together.
    fabric::Task make(fabric::Fabric& fabric, const Call& call);

    /// The blocks from the rank of this node with that place, for all ranks of another node.
    fabric::PlaintextBuffer run(int node, int local) const {
        return room_.subspan(offset(node, local), bytes(node, local));
    }
    /// The blocks from all ranks of this node.
    fabric::PlaintextBuffer for_node(int node) const {
        const int last = static_cast<int>(node_peers_) - 1;
        return room_.subspan(offset(node, 0), offset(node, last) + bytes(node, last) - offset(node, 0));
    }
    /// Puts this rank's own blocks there.
    void put(fabric::Fabric& fabric, const Call& call) const;

  private:
    std::size_t cell(int node, int local) const {
        return static_cast<std::size_t>(node) * node_peers_ + static_cast<std::size_t>(local);
    }
    std::size_t offset(int node, int local) const {
        if (!each_) return offset_[cell(node, local)];
        const auto stay = node > node_ ? static_cast<int>(node_peers_) : 0;
        const auto before = static_cast<std::size_t>(topology_->ranks_before(node) - stay);
        return before * node_peers_ * *each_ + static_cast<std::size_t>(local) * bytes(node, local);
    }
    std::size_t bytes(int node, int local) const {
        if (!each_) return size_[cell(node, local)];
        return node == node_ ? 0 : static_cast<std::size_t>(topology_->node_size(node)) * *each_;
    }

    const fabric::Topology* topology_ = nullptr;
    int node_ = 0;  ///< this node, whose own blocks do not leave
    fabric::PlaintextBuffer room_;
    std::size_t node_peers_ = 0;
    std::optional<std::size_t> each_;         ///< bytes of each block, if all have one size
    std::vector<std::size_t> offset_, size_;  ///< by cell(); empty when all blocks have one size
};

}  // namespace mpisec::coll
