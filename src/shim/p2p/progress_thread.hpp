// MPISEC_PROGRESS=thread: a thread that moves on what is under way while the program computes, and so serves
// windows that other ranks access. Only where MPI granted MPI_THREAD_MULTIPLE.
#pragma once

namespace mpisec::shim {

/// Where the setting asks for it. `granted`: by the MPI library, MPI_THREAD_MULTIPLE; says so where it is not.
void start_progress_thread(bool granted);
void stop_progress_thread();  ///< joins it (M14)

}  // namespace mpisec::shim
