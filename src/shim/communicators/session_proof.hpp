// Whether the processes of a session's group share memory, in a program without MPI_COMM_WORLD: proven by
// sharing memory, as at start-up (node_proof.hpp).
//
// All processes of the group open one object in /dev/shm, whose name follows from the node id (kernel,
// /dev/shm, network namespace, user, launcher: another job has another one), the tag, the processes' ranks in
// the job and the nonces of their hellos: no other user of the node can know the name before it is there, and take it. Only the
// nonces arrived over the network, and whoever changes them only makes the proof fail. Each process enters itself with a random value
// and, when all have done so, a digest of all random values: only a process that is alive and sees this memory can do that. Exactly the
// processes of the group must be there within a time limit; the first process that finds this to be so, or that reaches the limit, decides
// for all.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>
#include <vector>

#include "shim/startup/hello.hpp"

namespace mpisec::shim {

/// Ranks in the job of the group's processes: those of a session's "mpi://WORLD". Empty when it cannot be told.
std::vector<std::int32_t> job_ranks(MPI_Group group);

/// Empty when proven, else a sentence that says what is missing. Called by all processes of the group, with the hellos that they have
/// just exchanged; blocks, but lets the MPI library make progress.
std::string why_not_on_one_node(MPI_Group group, const std::string& tag, const std::vector<Hello>& hellos);

}  // namespace mpisec::shim
