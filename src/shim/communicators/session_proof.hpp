// Whether the processes of a session's group share memory, in a program without MPI_COMM_WORLD: proven by
// sharing memory, as at start-up (node_proof.hpp), before the MPI library exchanges anything. Nothing
// that came over the network has a part in it.
//
// All processes of the group open one object in /dev/shm, whose name follows from the node id (kernel,
// /dev/shm, network namespace, user, launcher: another job has another one), the tag, the processes' ranks in
// the job and how often this was called before. Each enters itself with a random value, and when all have,
// a digest of all random values: only who is alive and sees this memory can. Exactly the processes of the
// group must be there within a time limit; the first to find it so, or to reach the limit, decides for all.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>
#include <vector>

namespace mpisec::shim {

/// Ranks in the job of the group's processes: those of a session's "mpi://WORLD". Empty when it cannot be told.
std::vector<std::int32_t> job_ranks(MPI_Group group);

/// Empty when proven, else a sentence that says what is missing. Called by all processes of the group;
/// blocks, letting the MPI library make progress meanwhile.
std::string why_not_on_one_node(MPI_Group group, const std::string& tag);

}  // namespace mpisec::shim
