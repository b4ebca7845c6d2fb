// The blocks of a node's ranks, one after the other in its shared memory: so they travel between nodes in
// gather and scatter.
#pragma once

#include <vector>

#include "coll/collective.hpp"

namespace mpisec::coll {

struct NodeBlocks {
    fabric::PlaintextBuffer all;
    std::vector<fabric::PlaintextBuffer> of;  ///< by local index
};

/// This rank's block. The root's stays in its own buffer: it has a place only where all have one.
std::size_t own_bytes(const fabric::Fabric& fabric, const Call& call, const Blocks& roots);

/// Makes room for `mine` bytes of each rank of the node. Ranks that know only their own size tell each other.
fabric::Task make_room(fabric::Fabric& fabric, std::size_t mine, bool equal, NodeBlocks& blocks);

}  // namespace mpisec::coll
