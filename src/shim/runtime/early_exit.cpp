#include "shim/runtime/early_exit.hpp"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <string>

#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/process/process.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/runtime/gate.hpp"

namespace mpisec::shim {
namespace {

// MPI_Abort should end the process, but the thread that exits may be anywhere in the library.
constexpr unsigned longest_abort = 10;

#ifdef OPEN_MPI
constexpr bool launcher_ends_job = true;
#else
constexpr bool launcher_ends_job = false;
#endif

void note_status(int status, void*) {
    process.exit_status = status;
}

/// After all exit handlers and destructors of the program, one of which may call MPI_Finalize.
[[gnu::destructor]] void end_job() {
    const int status = process.exit_status;
    if (status == 0 || gate.phase != Phase::closed || in_child()) return;
    fflush(stdout);  // which exit() would do after this
    signal(SIGALRM, SIG_DFL);
    sigset_t alarm_only;
    sigemptyset(&alarm_only);
    sigaddset(&alarm_only, SIGALRM);
    pthread_sigmask(SIG_UNBLOCK, &alarm_only, nullptr);
    alarm(seconds_to_end_a_job + longest_abort);
    // If the launcher knows of the end (MPI_Abort), it ends this process during this sleep.
    sleep(seconds_to_end_a_job);
    say("exits with status " + std::to_string(status & 0xff) +
        " before MPI_Finalize; the job ends, because the other ranks would wait for this one there");
    real.Abort(constants.comm_world, status & 0xff);
}

}  // namespace

void end_job_on_early_exit() {
    if (!launcher_ends_job) on_exit(note_status, nullptr);
}

}  // namespace mpisec::shim
