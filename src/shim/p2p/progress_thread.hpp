// MPISEC_PROGRESS=thread: a thread that moves on what is under way while the program computes, and so serves
// windows that other ranks access. Only where MPI granted MPI_THREAD_MULTIPLE.
#pragma once

namespace mpisec::shim {

void start_progress_thread();  ///< where the setting asks for it; says so where MPI did not grant enough
void stop_progress_thread();   ///< joins it (M14)

}  // namespace mpisec::shim
