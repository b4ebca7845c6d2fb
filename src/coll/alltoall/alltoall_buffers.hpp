// What leaves and what enters a node in an all-to-all, in its shared memory.
#pragma once

#include <vector>

#include "coll/collective.hpp"

namespace mpisec::coll {

/// All blocks for the ranks of this node, in the order of source node, source, destination.
class Arrivals {
  public:
    /// Made by all ranks of the node together.
    fabric::Task make(fabric::Fabric& fabric, const Call& call);

    /// From one rank, for all of this node.
    fabric::PlaintextBuffer row(int source) const { return cells(source, source); }
    /// From all ranks of a node, another one.
    fabric::PlaintextBuffer of_node(const fabric::Topology& topology, int node) const {
        return cells(topology.members(node).front(), topology.members(node).back());
    }
    /// This rank's own blocks for the others of its node.
    void put(fabric::Fabric& fabric, const Call& call) const;
    /// After all is there: this rank's blocks from the others.
    void take(fabric::Fabric& fabric, const Call& call) const;

  private:
    std::size_t cell(int source, std::size_t local) const {
        return static_cast<std::size_t>(source) * node_peers_ + local;
    }
    fabric::PlaintextBuffer block(int source, std::size_t local) const {
        return room_.subspan(offset_[cell(source, local)], size_[cell(source, local)]);
    }
    fabric::PlaintextBuffer cells(int first, int last) const {
        const std::size_t begin = offset_[cell(first, 0)], end = cell(last, node_peers_ - 1);
        return room_.subspan(begin, offset_[end] + size_[end] - begin);
    }

    fabric::PlaintextBuffer room_;
    std::size_t node_peers_ = 0;
    std::vector<std::size_t> offset_, size_;  ///< by cell()
};

/// All blocks of this node's ranks for other nodes, in the order of destination node, source, destination.
class Departures {
  public:
    /// Made by all ranks of the node together.
    fabric::Task make(fabric::Fabric& fabric, const Call& call);

    /// From the rank of this node with that place, for all of another node.
    fabric::PlaintextBuffer run(int node, int local) const {
        return cells(cell(node, local), cell(node, local));
    }
    /// From all ranks of this node.
    fabric::PlaintextBuffer for_node(int node) const {
        return cells(cell(node, 0), cell(node, static_cast<int>(node_peers_) - 1));
    }
    /// This rank's own blocks.
    void put(fabric::Fabric& fabric, const Call& call) const;

  private:
    std::size_t cell(int node, int local) const {
        return static_cast<std::size_t>(node) * node_peers_ + static_cast<std::size_t>(local);
    }
    fabric::PlaintextBuffer cells(std::size_t first, std::size_t last) const {
        return room_.subspan(offset_[first], offset_[last] + size_[last] - offset_[first]);
    }

    fabric::PlaintextBuffer room_;
    std::size_t node_peers_ = 0;
    std::vector<std::size_t> offset_, size_;  ///< by cell()
};

}  // namespace mpisec::coll
