// Ranks that leave before MPI_Finalize.
#pragma once

namespace mpisec::shim {

/// From now on a process that exits with an error status before MPI_Finalize ends the job. MPICH's fatal error handler ends a process in
/// this way for errors on MPI_COMM_SELF, and its launcher then leaves the ranks of other nodes alone: plain ranks may get through
/// MPI_Finalize, while MPIsec's wait there for all.
void end_job_on_early_exit();

}  // namespace mpisec::shim
