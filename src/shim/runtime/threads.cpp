#include "shim/runtime/threads.hpp"

#include <linux/membarrier.h>
#include <mpi.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>

#include "shim/runtime/errors.hpp"

namespace mpisec::shim {
namespace {

long membarrier(int command) {
    return syscall(SYS_membarrier, command, 0, 0);
}

const char* name_of_level(int level) {
    return level == MPI_THREAD_SINGLE     ? "MPI_THREAD_SINGLE"
           : level == MPI_THREAD_FUNNELED ? "MPI_THREAD_FUNNELED"
                                          : "MPI_THREAD_SERIALIZED";
}

/// Not by MPI_Abort: the other thread is inside MPI, which was not asked to support two.
[[noreturn]] void end_job(const char* call) {
    say(std::string(call) +
        ": two threads of this rank call MPI at the same time, but MPI_Init granted only " +
        name_of_level(sealing_lock.granted) +
        ". MPIsec ends the job before a key and a nonce could be used twice; ask for MPI_THREAD_MULTIPLE in "
        "MPI_Init_thread, or let one thread at a time call MPI");
    wait_before_abort();
    signal(SIGABRT, SIG_DFL);
    kill(getpid(), SIGABRT);
    for (;;) pause();
}

/// After this, either the owner has been seen outside and takes the lock from now on, or it was inside and the job ends.
void revoke_bias(const char* call) {
    sealing_lock.bias_revoked.store(true, std::memory_order_seq_cst);
    if (sealing_lock.owner && sealing_lock.owner != &thread_mark) {
        membarrier(MEMBARRIER_CMD_GLOBAL);
        if (sealing_lock.owner_inside.load(std::memory_order_acquire)) end_job(call);
    }
    sealing_lock.bias_gone.store(true, std::memory_order_release);
}

}  // namespace

constinit thread_local char thread_mark = 0;

void start_sealing_lock(int level) {
    sealing_lock.granted = level;
    const long offered = membarrier(MEMBARRIER_CMD_QUERY);
    // Without that fence no thread is preferred: all take the lock.
    if (offered > 0 && (offered & MEMBARRIER_CMD_GLOBAL) != 0) sealing_lock.owner = &thread_mark;
}

void SealingScope::lock(const char* call) {
    if (!sealing_lock.bias_gone.load(std::memory_order_acquire)) revoke_bias(call);
    if (sealing_lock.locked.exchange(true, std::memory_order_acquire)) end_job(call);
}

}  // namespace mpisec::shim
