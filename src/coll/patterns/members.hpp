// Ranks that take part in a pattern, in an order that all of them know. Which rank is where is computed: a rank that
// takes part with N others keeps no list of them.
#pragma once

#include <vector>

#include "fabric/fabric.hpp"

namespace mpisec::coll {

class Members {
  public:
    /// All ranks of the cluster.
    static Members everybody(const fabric::Fabric& fabric) {
        return {fabric.topology(), all_of_a_node, fabric.topology().ranks(), fabric.rank()};
    }
    /// The rank with this place in each node, by node.
    static Members across_nodes(const fabric::Fabric& fabric, int local) {
        return {fabric.topology(), local, fabric.topology().nodes(), fabric.node()};
    }

    int me() const { return me_; }  ///< index of this rank
    int size() const { return size_; }
    int rank(int index) const {
        const int member = (first_ + index) % size_;
        if (member == replaced_) return replacement_;
        if (local_ == all_of_a_node) return member;
        return topology_->members(member)[static_cast<std::size_t>(local_)];
    }
    std::vector<int> ranks() const {
        std::vector<int> all;
        for (int index = 0; index < size_; ++index) all.push_back(rank(index));
        return all;
    }

    /// The same members from that one on, wrapping around at the end.
    Members from(int index) const {
        Members turned = *this;
        turned.first_ = (first_ + index) % size_;
        turned.me_ = (me_ - index + size_) % size_;
        return turned;
    }
    /// The same members, with another rank in the place of that one.
    Members with(int index, int rank) const {
        Members changed = *this;
        changed.replaced_ = (first_ + index) % size_;
        changed.replacement_ = rank;
        return changed;
    }

  private:
    static constexpr int all_of_a_node = -1;
    Members(const fabric::Topology& topology, int local, int size, int me)
        : topology_(&topology), local_(local), size_(size), me_(me) {}

    const fabric::Topology* topology_;
    int local_, size_, me_;
    int first_ = 0;
    int replaced_ = -1, replacement_ = 0;
};

}  // namespace mpisec::coll
