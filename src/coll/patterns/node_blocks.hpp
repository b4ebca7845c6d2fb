// The blocks of a node's ranks, one after the other in its shared memory. Gather and scatter send them between nodes in
// this form.
#pragma once

#include <vector>

#include "coll/collective.hpp"

namespace mpisec::coll {

struct NodeBlocks {
    fabric::PlaintextBuffer all;
    std::vector<fabric::PlaintextBuffer> of;  ///< by local index
};

/// Bytes that this rank's block has there. The root's block stays in its own buffer: it has a place only where every rank must have one.
std::size_t own_bytes(const fabric::Fabric& fabric, const Call& call, const Blocks& roots);

/// Makes room for `mine` bytes of each rank of the node. Ranks that know only their own size tell each other.
fabric::Task make_room(fabric::Fabric& fabric, std::size_t mine, bool equal, NodeBlocks& blocks);

}  // namespace mpisec::coll
