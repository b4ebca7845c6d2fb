// The encrypted all-gathers of Lahijani et al. (Efficient Algorithms for Encrypted All-gather Operation,
// IPDPS 2021), for any number of ranks and nodes, nodes of unequal size and any placement, and blocks of
// unequal size (MPI_Allgatherv). What each costs: docs/collectives.md.
#pragma once

#include "coll/blocks.hpp"
#include "fabric/task.hpp"

namespace mpisec::coll {

// All run on every rank. Before, the rank's own block is in its place in `blocks`; after, all blocks are,
// unless the fabric has failed. `fabric` and `blocks` must outlive the task.

/// Every rank seals; all-gather of ciphertext; every rank opens all.
fabric::Task allgather_naive(fabric::Fabric& fabric, const Blocks& blocks);
/// Ring; sealed only where it crosses nodes.
fabric::Task allgather_o_ring(fabric::Fabric& fabric, const Blocks& blocks);
/// Doubling; a node's data is sealed once and forwarded as it is.
fabric::Task allgather_o_rd(fabric::Fabric& fabric, const Blocks& blocks);
/// Doubling; data is opened, merged and sealed anew in each round.
fabric::Task allgather_o_rd2(fabric::Fabric& fabric, const Blocks& blocks);
/// Concurrent rings between nodes, then an all-gather in each node.
fabric::Task allgather_c_ring(fabric::Fabric& fabric, const Blocks& blocks);
/// The same with doubling.
fabric::Task allgather_c_rd(fabric::Fabric& fabric, const Blocks& blocks);
/// Shared memory: the leader seals the node's data, the ranks share the opening.
fabric::Task allgather_hs1(fabric::Fabric& fabric, const Blocks& blocks);
/// Shared memory: each rank seals its own block, the ranks share the opening.
fabric::Task allgather_hs2(fabric::Fabric& fabric, const Blocks& blocks);
/// Shared memory: as HS1, with every rank a leader of a slice.
fabric::Task allgather_hsc(fabric::Fabric& fabric, const Blocks& blocks);
/// Rings of segments between nodes; not of the paper.
fabric::Task allgather_pipeline(fabric::Fabric& fabric, const Blocks& blocks);

}  // namespace mpisec::coll
