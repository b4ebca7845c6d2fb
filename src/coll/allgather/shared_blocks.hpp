// A second copy of the blocks of an all-gather, in the memory of a node.
#pragma once

#include <optional>
#include <vector>

#include "coll/blocks.hpp"

namespace mpisec::coll {

/// Every `leaders`-th rank of a node, from the one with place `number` on.
class Slice {
  public:
    Slice(const fabric::Topology& topology, int node, int number, int leaders)
        : members_(topology.members(node)), number_(number), leaders_(leaders) {}
    int size() const { return (static_cast<int>(members_.size()) - number_ + leaders_ - 1) / leaders_; }
    int rank(int index) const { return members_[static_cast<std::size_t>(number_ + index * leaders_)]; }
    int first() const { return rank(0); }
    int last() const { return rank(size() - 1); }

  private:
    Ranks members_;
    int number_, leaders_;
};

/// All blocks, node by node, and those of a node slice by slice: consecutive ranks of a slice are one run of
/// bytes. Where all blocks have one size, the place of each is computed and not kept.
class SharedBlocks {
  public:
    /// Made by all ranks of the node together.
    SharedBlocks(fabric::Fabric& fabric, const Blocks& blocks, int leaders)
        : topology_(fabric.topology()), blocks_(blocks), leaders_(leaders), each_(blocks.each()) {
        std::size_t total = 0;
        if (each_)
            total = *each_ * blocks.size.size();
        else
            total = place_all();
        room_ = fabric.shared_plaintext(total);
    }

    std::size_t bytes(int rank) const { return blocks_.size[static_cast<std::size_t>(rank)]; }
    std::size_t bytes(const Slice& slice) const {
        return each_ ? *each_ * static_cast<std::size_t>(slice.size())
                     : run(slice.first(), slice.last()).size();
    }

    fabric::PlaintextBuffer of(int rank) const { return run(rank, rank); }
    /// The blocks from the first of these ranks to the last, which are in one slice.
    fabric::PlaintextBuffer run(int first, int last) const {
        const std::size_t begin = offset(first), end = offset(last) + bytes(last);
        return room_.subspan(begin, end - begin);
    }

  private:
    std::size_t offset(int rank) const {
        return each_ ? *each_ * place(rank) : offset_[static_cast<std::size_t>(rank)];
    }
    std::size_t place(int rank) const {
        const int node = topology_.node(rank), ranks = topology_.node_size(node),
                  local = topology_.local(rank);
        int before = local;  // ranks of the node before it, if there is one slice, or one rank in each
        if (leaders_ != 1 && leaders_ != ranks) {
            const int slice = local % leaders_;
            before = slice * (ranks / leaders_) + std::min(slice, ranks % leaders_) + local / leaders_;
        }
        return static_cast<std::size_t>(topology_.ranks_before(node) + before);
    }
    std::size_t place_all() {
        offset_.resize(blocks_.size.size());
        std::size_t total = 0;
        for (int node = 0; node < topology_.nodes(); ++node)
            for (int number = 0; number < leaders_; ++number) {
                const Slice slice(topology_, node, number, leaders_);
                for (int index = 0; index < slice.size(); ++index) {
                    offset_[static_cast<std::size_t>(slice.rank(index))] = total;
                    total += bytes(slice.rank(index));
                }
            }
        return total;
    }

    const fabric::Topology& topology_;
    const Blocks& blocks_;
    const int leaders_;
    const std::optional<std::size_t> each_;
    std::vector<std::size_t> offset_;  ///< by rank; empty where they are computed
    fabric::PlaintextBuffer room_;
};

}  // namespace mpisec::coll
