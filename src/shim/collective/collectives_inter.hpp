// Collectives on inter-communicators (MPI standard section 6.2.3): the two groups are the ranks of one
// shadow communicator. Rooted ones are the ordinary algorithm among the root and the other group; in
// the others each rank sends to, and receives from, all of the other group, and reduces what it received
// itself.
#pragma once

#include "shim/collective/collective_plan.hpp"

namespace mpisec::shim::inter {

/// What this rank is in a rooted call. MPI_ROOT: `root`; MPI_PROC_NULL: `bystander`.
enum class Role { root, bystander, leaf };
/// Sets who takes part, the root first; `root` is the call's argument.
Role take_part(CollectivePlan& plan, int root);

/// The blocks of the other group as blocks of all ranks of the shadow communicator, or of the root's call.
coll::Blocks of_remote(const CollectivePlan& plan, const coll::Blocks& blocks);
coll::Blocks behind_root(const coll::Blocks& blocks);
/// All of both groups.
void all_take_part(CollectivePlan& plan);

/// The vectors of the other group's ranks, one after the other, reduced into the last. At the end.
void reduce_vectors(CollectivePlan& plan, fabric::PlaintextBuffer vectors, std::size_t bytes);

}  // namespace mpisec::shim::inter
