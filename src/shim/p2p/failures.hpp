// Processes that have failed, and communicators that were revoked (User-Level Failure Mitigation, the extensions of Open MPI and MPICH):
// what the MPI library says of them, and what must no longer wait for them. Which processes have failed is the library's word, which nobody
// can prove: a process whose link is cut looks the same.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "shim/p2p/communicator.hpp"
#include "shim/runtime/state.hpp"

namespace mpisec::shim {

/// The library's extensions; null where it lacks them.
struct FaultTolerance {
    FaultTolerance();
    int (*revoke)(MPI_Comm);
    int (*is_revoked)(MPI_Comm, int*);
    int (*get_failed)(MPI_Comm, MPI_Group*);
    int (*shrink)(MPI_Comm, MPI_Comm*);
    int (*agree)(MPI_Comm, int*);
    int (*iagree)(MPI_Comm, int*, MPI_Request*);
};
FaultTolerance& fault_tolerance();

/// Whether this job goes on when a process has died, as the library says (MPI_FT). After MPI_Init.
bool job_is_fault_tolerant();

/// Whether an error code says that a process has failed, or that a communicator was revoked.
bool is_failure(int code);

/// Why operations under way on the communicator may never complete: an error code, or MPI_SUCCESS. Where no failures are expected,
/// failure_on() returns MPI_SUCCESS without looking.
int look_for_failure(const Communicator& comm);
inline int failure_on(const Communicator& comm) {
    return state.fault_tolerant ? look_for_failure(comm) : MPI_SUCCESS;
}
/// The same for a message to or from one process, by number.
int failure_of_peer(const Communicator& comm, std::int32_t peer);
/// The same for processes of this world, by number: whether one of them has failed.
int failure_among(Ranks members);
/// Whether any process of the job has failed, as far as this one knows.
bool any_failure();

/// Looks for failures now and then, in loops that wait.
class FailureWatch {
  public:
    /// `look()` returns an error code.
    template <class Look>
    int now_and_then(Look look) {
        if (!state.fault_tolerant || passes_++ % passes_between_looks != 0) return MPI_SUCCESS;
        return look();
    }

  private:
    static constexpr unsigned passes_between_looks = 256;
    unsigned passes_ = 0;
};

}  // namespace mpisec::shim
