// MPISEC_PROGRESS=thread: a thread that advances what is under way while the program computes, and so serves windows that other ranks
// access. Only where MPI granted MPI_THREAD_MULTIPLE.
#pragma once

namespace mpisec::shim {

/// Starts it where the setting asks for it. `granted`: whether the MPI library granted MPI_THREAD_MULTIPLE; where it did not, says so.
void start_progress_thread(bool granted);
void stop_progress_thread();  ///< joins it (M14)

}  // namespace mpisec::shim
