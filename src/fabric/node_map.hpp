// Which node each rank is on. Where ranks are placed in blocks or dealt out in turn, the node is computed: a list of all ranks is kept only
// for other placements.
#pragma once

#include <algorithm>
#include <vector>

namespace mpisec::fabric {

class NodeMap {
  public:
    NodeMap() = default;
    /// `node`: the number of each rank's node; nodes are numbered from 0 in the order of their lowest rank.
    explicit NodeMap(std::vector<int> node) : ranks_(static_cast<int>(node.size())) {
        for (int one : node) nodes_ = std::max(nodes_, one + 1);
        while (block_ < ranks_ && node[static_cast<std::size_t>(block_)] == 0) ++block_;
        if (is(node, [this](int rank) { return rank / block_; }))
            kind_ = Kind::blocks;
        else if (is(node, [this](int rank) { return rank % nodes_; }))
            kind_ = Kind::in_turn;
        else
            node_ = std::move(node);
        if (nodes_ > 0) turns_ = ranks_ / nodes_, rest_ = ranks_ % nodes_;
    }

    int ranks() const { return ranks_; }
    int nodes() const { return nodes_; }
    int node(int rank) const {
        if (kind_ == Kind::blocks) return rank / block_;
        if (kind_ == Kind::in_turn) return rank % nodes_;
        return node_[static_cast<std::size_t>(rank)];
    }

    enum class Kind { blocks, in_turn, listed };
    Kind kind() const { return kind_; }
    /// Ranks of the first node; when ranks are placed in blocks, also of every other node but the last.
    int block() const { return block_; }
    /// Ranks of every node when ranks are dealt out in turn; the first rest() nodes have one more.
    int turns() const { return turns_; }
    int rest() const { return rest_; }

  private:
    template <class Rule>
    bool is(const std::vector<int>& node, Rule rule) const {
        for (int rank = 0; rank < ranks_; ++rank)
            if (node[static_cast<std::size_t>(rank)] != rule(rank)) return false;
        return true;
    }

    Kind kind_ = Kind::listed;
    int ranks_ = 0, nodes_ = 0, block_ = 0, turns_ = 0, rest_ = 0;
    std::vector<int> node_;  ///< by rank, when listed
};

}  // namespace mpisec::fabric
