// Collectives on inter-communicators (MPI standard section 6.2.3): the two groups are the ranks of one
// shadow communicator. A rooted collective is the ordinary algorithm among the root and the other group. In all other
// collectives each rank sends to and receives from all ranks of the other group, and itself reduces what it received.
#pragma once

#include "shim/collective/collective_plan.hpp"

namespace mpisec::shim::inter {

/// What this rank is in a rooted call. MPI_ROOT: `root`; MPI_PROC_NULL: `bystander`.
enum class Role { root, bystander, leaf };
/// Sets who takes part, the root first; `root` is the call's argument.
Role take_part(CollectivePlan& plan, int root);

/// of_remote(): the blocks of the other group as blocks of all ranks of the shadow communicator; behind_root(): as blocks
/// of the root's call.
coll::Blocks of_remote(const CollectivePlan& plan, const coll::Blocks& blocks);
coll::Blocks behind_root(const coll::Blocks& blocks);
/// All ranks of both groups take part.
void all_take_part(CollectivePlan& plan);

/// At the end, reduces the vectors of the other group's ranks, which lie one after the other, into the last one.
void reduce_vectors(CollectivePlan& plan, fabric::PlaintextBuffer vectors, std::size_t bytes);

}  // namespace mpisec::shim::inter
