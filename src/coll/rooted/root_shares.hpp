// How the ranks of the root's node share its work in gather and scatter: helpers seal or open for ranks
// on other nodes, in the root's node's shared memory. Blocks go through that memory in batches, two of which are there
// at a time: one is copied from or to the root's buffer while helpers work on the other.
#pragma once

#include <vector>

#include "coll/collective.hpp"

namespace mpisec::coll {

/// The rank on the root's node that seals or opens for `rank`, which is on another node.
int helper_of(const fabric::Topology& topology, int root, int rank);

class RootShares {
  public:
    /// Called by all ranks of the root's node. `roots`: the root's blocks. Ranks that do not know their sizes are
    /// told.
    fabric::Task make(fabric::Fabric& fabric, const Call& call, const Blocks& roots);

    int batches() const { return static_cast<int>(batches_.size()); }
    struct Share {
        int rank;  ///< whose block it is
        /// the rank that seals or opens it; a rank of this node is its own helper, and only copies it
        int helper;
        fabric::PlaintextBuffer shared;  ///< none when the root is the helper
    };
    const std::vector<Share>& batch(int number) const { return batches_[static_cast<std::size_t>(number)]; }

  private:
    std::vector<std::vector<Share>> batches_;
};

}  // namespace mpisec::coll
