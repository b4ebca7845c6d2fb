// How the ranks of the root's node share its work in gather and scatter: each seals or opens for some of the
// ranks elsewhere, in their node's shared memory.
#pragma once

#include <vector>

#include "coll/collective.hpp"

namespace mpisec::coll {

/// Who at the root does it for `rank`, which is on another node.
int helper_of(const fabric::Topology& topology, int root, int rank);
/// The ranks for which `helper` does it.
std::vector<int> helped_by(const fabric::Topology& topology, int root, int helper);

/// On the root's node: room in shared memory for all blocks that the root does not seal or open itself; the
/// others have none. `roots`: the root's blocks.
fabric::Task share_blocks(fabric::Fabric& fabric, const Call& call, const Blocks& roots, Blocks& shared);

}  // namespace mpisec::coll
