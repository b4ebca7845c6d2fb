// One sealed block per node on its way to or from the root of gather and scatter. A leader has the sealed
// blocks of its subtree in one run, so that it hands on each child's part as it is.
#pragma once

#include <vector>

#include "coll/collective.hpp"
#include "coll/patterns/leaders.hpp"
#include "coll/patterns/node_blocks.hpp"

namespace mpisec::coll {

/// The tree in which all other places are children of the root; used like Binomial.
class Flat {
  public:
    Flat(int places, int place) : places_(places), place_(place) {}
    int parent() const { return 0; }
    std::vector<int> children() const {
        std::vector<int> all;
        for (int child = 1; place_ == 0 && child < places_; ++child) all.push_back(child);
        return all;
    }
    int width() const { return place_ == 0 ? places_ : 1; }

  private:
    int places_, place_;
};

template <class Tree>
class NodeSealedBlocks {
  public:
    /// For the subtree of a leader that `has` these blocks of its node. The root knows the sizes of other nodes' blocks
    /// from its call (`roots`), other leaders only when all blocks are equal.
    NodeSealedBlocks(fabric::Fabric& fabric, const Leaders& leaders, const Blocks& roots,
                     const NodeBlocks& has)
        : nodes_(fabric.topology().nodes()), place_(leaders.place(fabric.node())), tree_(nodes_, place_) {
        for (int place = place_; place < place_ + tree_.width(); ++place) {
            const Ranks ranks = fabric.topology().members(leaders.node(place));
            std::size_t bytes = 0;
            if (place_ == 0)
                bytes = roots.bytes(ranks);
            else if (place == place_)
                bytes = has.all.size();
            else
                bytes = has.of.front().size() * ranks.size();
            const bool boxed = place != 0;  // the root's node needs none
            offset_.push_back(offset_.back() + (boxed ? fabric::sealed_bytes(bytes) : 0));
        }
        room_ = fabric.ciphertext(offset_.back());
    }

    int place() const { return place_; }
    const Tree& tree() const { return tree_; }
    fabric::CiphertextBuffer all() const { return room_; }
    fabric::CiphertextBuffer sealed_block(int place) const { return run(place, 1); }
    fabric::CiphertextBuffer subtree(int place) const { return run(place, width(place)); }
    int width(int place) const { return Tree(nodes_, place).width(); }

  private:
    fabric::CiphertextBuffer run(int place, int count) const {
        const std::size_t begin = offset_[static_cast<std::size_t>(place - place_)];
        return room_.part(begin, offset_[static_cast<std::size_t>(place - place_ + count)] - begin);
    }

    const int nodes_, place_;
    const Tree tree_;
    std::vector<std::size_t> offset_{0};
    fabric::CiphertextBuffer room_;
};

}  // namespace mpisec::coll
