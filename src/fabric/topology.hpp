// Which ranks of a communicator share a node. It is the same on every rank.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/ranks.hpp"
#include "fabric/node_map.hpp"

namespace mpisec::fabric {

class Topology {
  public:
    Topology() = default;  ///< of no ranks
    /// `node_of_rank[r]`: any number that is equal for two ranks if and only if they share a node. Nodes are
    /// numbered in the order of their lowest rank, ranks of a node in rank order, whatever the placement
    /// (block, cyclic, irregular).
    explicit Topology(const std::vector<int>& node_of_rank);

    int ranks() const { return node_map_.ranks(); }
    int nodes() const { return node_map_.nodes(); }
    int node(int rank) const { return node_map_.node(rank); }
    /// Place of the rank among those of its node, from 0.
    int local(int rank) const {
        switch (node_map_.kind()) {
            case NodeMap::Kind::blocks:
                return rank % node_map_.block();
            case NodeMap::Kind::in_turn:
                return rank / nodes();
            default:
                return local_[static_cast<std::size_t>(rank)];
        }
    }
    Ranks members(int node) const {
        switch (node_map_.kind()) {
            case NodeMap::Kind::blocks:
                return Ranks::every(1, node * node_map_.block(), node_size(node));
            case NodeMap::Kind::in_turn:
                return Ranks::every(nodes(), node, node_size(node));
            default:
                return members_[static_cast<std::size_t>(node)];
        }
    }
    int node_size(int node) const {
        switch (node_map_.kind()) {
            case NodeMap::Kind::blocks:
                return std::min(node_map_.block(), ranks() - node * node_map_.block());
            case NodeMap::Kind::in_turn:
                return node_map_.turns() + (node < node_map_.rest());
            default:
                return static_cast<int>(members_[static_cast<std::size_t>(node)].size());
        }
    }
    /// Every node's ranks are consecutive: operands that do not commute can be combined node by node.
    bool in_rank_order() const { return in_rank_order_; }
    int smallest_node() const { return smallest_; }
    /// Place of the rank when all are listed node by node.
    int place(int rank) const { return ranks_before(node(rank)) + local(rank); }
    /// Ranks on nodes with lower numbers.
    int ranks_before(int node) const {
        switch (node_map_.kind()) {
            case NodeMap::Kind::blocks:
                return node * node_map_.block();
            case NodeMap::Kind::in_turn:
                return node * node_map_.turns() + std::min(node, node_map_.rest());
            default:
                return before_[static_cast<std::size_t>(node)];
        }
    }
    /// Bytes of lists: none where the placement is regular.
    std::size_t bytes_kept() const;
    bool same_node(int a, int b) const { return node(a) == node(b); }

  private:
    NodeMap node_map_;
    int smallest_ = 0;
    bool in_rank_order_ = true;
    // When the placement is a list:
    std::vector<int> local_, before_;
    std::vector<std::vector<int>> members_;
};

}  // namespace mpisec::fabric
