// The encrypted all-gathers of Lahijani et al. (Efficient Algorithms for Encrypted All-gather Operation,
// IPDPS 2021), for any number of ranks and nodes, nodes of unequal size and any placement, and blocks of
// unequal size (MPI_Allgatherv). What each costs: docs/collectives.md.
#pragma once

#include "coll/blocks.hpp"
#include "fabric/task.hpp"

namespace mpisec::coll {

// All run on every rank; the rank's own block is in its place in `blocks` before, all blocks are after,
// unless the fabric has failed. `fabric` and `blocks` must outlive the task.

fabric::Task allgather_naive(
    fabric::Fabric& fabric,
    const Blocks& blocks);  ///< everybody seals, all-gather of ciphertext, everybody opens all
fabric::Task allgather_o_ring(fabric::Fabric& fabric,
                              const Blocks& blocks);  ///< ring; sealed only where it crosses nodes
fabric::Task allgather_o_rd(
    fabric::Fabric& fabric,
    const Blocks& blocks);  ///< doubling; a node's data sealed once, forwarded as it is
fabric::Task allgather_o_rd2(fabric::Fabric& fabric,
                             const Blocks& blocks);  ///< doubling; opened, merged and sealed anew each round
fabric::Task allgather_c_ring(
    fabric::Fabric& fabric,
    const Blocks& blocks);  ///< concurrent rings between nodes, then an all-gather in each node
fabric::Task allgather_c_rd(fabric::Fabric& fabric, const Blocks& blocks);  ///< the same with doubling
fabric::Task allgather_hs1(
    fabric::Fabric& fabric,
    const Blocks& blocks);  ///< shared memory: leader seals the node's data, ranks share the opening
fabric::Task allgather_hs2(
    fabric::Fabric& fabric,
    const Blocks& blocks);  ///< shared memory: each rank seals its own, ranks share the opening
fabric::Task allgather_hsc(
    fabric::Fabric& fabric,
    const Blocks& blocks);  ///< shared memory: as HS1, with every rank a leader of a slice
/// Rings of segments between nodes; not of the paper.
fabric::Task allgather_pipeline(fabric::Fabric& fabric, const Blocks& blocks);

}  // namespace mpisec::coll
