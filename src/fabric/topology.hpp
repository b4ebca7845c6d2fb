// Which ranks of a communicator share a node. Every rank has the same.
#pragma once

#include <vector>

namespace mpisec::fabric {

class Topology {
  public:
    /// `node_of_rank[r]`: any number that is equal for two ranks if and only if they share a node. Nodes are
    /// numbered in the order of their lowest rank, ranks of a node in rank order, whatever the placement
    /// (block, cyclic, irregular).
    explicit Topology(const std::vector<int>& node_of_rank);

    int ranks() const { return static_cast<int>(node_.size()); }
    int nodes() const { return static_cast<int>(members_.size()); }
    int node(int rank) const { return node_[static_cast<std::size_t>(rank)]; }
    /// Place of the rank among those of its node, from 0.
    int local(int rank) const { return local_[static_cast<std::size_t>(rank)]; }
    const std::vector<int>& members(int node) const { return members_[static_cast<std::size_t>(node)]; }
    int node_size(int node) const { return static_cast<int>(members(node).size()); }
    int smallest_node() const { return smallest_; }
    /// Place of the rank when all are listed node by node.
    int place(int rank) const { return ranks_before(node(rank)) + local(rank); }
    /// Ranks on nodes with lower numbers.
    int ranks_before(int node) const { return before_[static_cast<std::size_t>(node)]; }
    bool same_node(int a, int b) const { return node(a) == node(b); }

  private:
    std::vector<int> node_, local_, before_;
    std::vector<std::vector<int>> members_;
    int smallest_ = 0;
};

}  // namespace mpisec::fabric
