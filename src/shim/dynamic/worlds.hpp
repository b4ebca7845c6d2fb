// Two worlds that the MPI library has connected, by spawning one or by a port or socket. Before the program gets the
// inter-communicator, their processes do a start-up together (sessions/start_up.hpp).
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>
#include <vector>

namespace mpisec::shim {

/// Which group's processes come first in the realm.
enum class Side { first, second, either };

struct Joining {
    const char* procedure;
    std::string call;  ///< what both sides know of their call
    Side side;
    MPI_Group local, remote;  ///< what the groups must be; the other side's may be unknown, MPI_GROUP_NULL
    std::vector<std::int32_t> job_ranks{};         ///< of the local group's processes; empty when not known
    std::vector<std::int32_t> remote_job_ranks{};  ///< of the other side's
    /// rank in the local group of the process that knows the remote group, where the other processes do not
    int judge = -1;
};
/// `made`: the inter-communicator. Collective over both groups. Ends the job when the other side does not answer,
/// or is not protected; on return MPIsec knows the communicator. Returns an error code that was not raised.
int join_worlds(const Joining& joining, MPI_Comm made);

/// Whether this world was spawned.
bool has_parents();
/// In MPI_Init, when the job is protected: a spawned world joins its parents'.
void join_parents();

}  // namespace mpisec::shim
