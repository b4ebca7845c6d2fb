#include "shim/runtime/gate.hpp"

#include <pthread.h>
#include <unistd.h>

#include <cstdlib>
#include <mutex>
#include <string>

#include "shim/runtime/device.hpp"
#include "shim/runtime/errors.hpp"

namespace mpisec::shim {
namespace {

constinit thread_local bool starts_here = false;  ///< this thread is in MPI_Init

bool has_keys(Phase phase) {
    return phase == Phase::closed || phase == Phase::starting || phase == Phase::ended;
}

void count_fork() {
    if (gate.phase.load(std::memory_order_relaxed) == Phase::closed)
        gate.forks.fetch_add(1, std::memory_order_relaxed);
}

/// The child has its parent's sockets and shared memory, but neither keys nor the threads that serve them. Here it only learns that it is a
/// child: what it must not do is decided where it calls MPI.
void shut_child() {
    if (has_keys(gate.phase.load(std::memory_order_relaxed))) gate.phase = Phase::forked;
    // Its descriptors may be closed in ways that are not seen here, and their numbers reused.
    for (auto& page : process.sockets.pages) page.store(nullptr, std::memory_order_relaxed);
}

void handle_forks() {
    std::call_once(process.fork_handlers, [] {
        if (pthread_atfork(nullptr, count_fork, shut_child) != 0)
            abort_job("MPIsec cannot register its handler for fork(): out of memory");
    });
}

/// A program may reach MPI_Init past MPIsec with dlopen() and dlsym(), and MPI_Send through MPIsec: no keys were agreed on, and what looks
/// like "before MPI_Init" would leave in clear (S1).
void require_no_other_start(const char* procedure) {
    int initialized = 0, finalized = 0;
    real.Initialized(&initialized);
    real.Finalized(&finalized);
    if (!initialized || finalized) return;
    abort_job(
        std::string(procedure) +
        " was called, but MPI was initialized past MPIsec (dlopen and dlsym on the library itself), so "
        "there are no keys to protect it with. The program must call MPI_Init through its dynamic symbols.");
}

}  // namespace

void end_child(const char* procedure) {
    say(std::string(procedure) +
        " was called in a child process that fork() made after MPI_Init: its keys are wiped and the "
        "connections are its parent's, so the child ends here. Call MPI in the parent only, or start a "
        "program of its own with exec.");
    _exit(EXIT_FAILURE);
}

bool pass_gate_slowly(const char* procedure) {
    for (;;) {
        switch (gate.phase.load(std::memory_order_acquire)) {
            case Phase::closed:
            case Phase::ended:
                return false;
            case Phase::open:
                return true;
            case Phase::before:
                require_no_other_start(procedure);
                return true;
            case Phase::starting:
                if (starts_here) return true;
                gate.phase.wait(Phase::starting);
                break;
            case Phase::forked:
                end_child(procedure);
        }
    }
}

Starting::Starting() {
    handle_forks();
    // A session's communicator may have closed the gate already.
    const auto begins = [this] {
        const std::lock_guard lock(process.life);  // not while the last session ends protection
        return begin();
    };
    while (!(begun_ = begins())) {
        if (previous_ == Phase::forked) end_child("MPI_Init");
        if (previous_ != Phase::starting || starts_here) return;
        gate.phase.wait(Phase::starting);
        previous_ = Phase::before;
    }
}

bool Starting::begin() {
    if (!gate.phase.compare_exchange_strong(previous_, Phase::starting) &&
        !(previous_ == Phase::closed && !process.world_begun &&
          gate.phase.compare_exchange_strong(previous_, Phase::starting)))
        return false;
    starts_here = true;
    process.world_begun = true;
    process.initialized_by = getpid();
    return true;
}

bool starts_elsewhere() {
    return gate.phase.load(std::memory_order_acquire) == Phase::starting && !starts_here;
}

void wait_for_start() {
    while (starts_elsewhere()) gate.phase.wait(Phase::starting);
}

Starting::~Starting() {
    if (!begun_) return;
    process.world_begun = false;
    end(previous_);
}

void protect_from_now_on() {
    handle_forks();
    process.initialized_by = getpid();
    watch_for_driver();
    gate.phase.store(Phase::closed, std::memory_order_release);
}

void name_process(int rank) {
    const std::lock_guard lock(process.life);
    if (!process.world_begun) process.state.world.rank = rank;
}

void Starting::end(Phase next) {
    begun_ = starts_here = false;
    gate.phase.store(next, std::memory_order_release);
    gate.phase.notify_all();
}

bool in_child() {
    return process.initialized_by != 0 && process.initialized_by != getpid();
}

int Initialized(int* flag) {
    switch (gate.phase.load(std::memory_order_acquire)) {
        case Phase::starting:
            *flag = 0;
            return MPI_SUCCESS;
        case Phase::forked:
            return real.Finalized(flag);  // MPI_Initialized stays true after MPI_Finalize
        case Phase::before:
            if (!real.Initialized) {  // no MPI library is loaded yet
                *flag = 0;
                return MPI_SUCCESS;
            }
            [[fallthrough]];
        default:
            return real.Initialized(flag);
    }
}

int Finalized(int* flag) {
    if (real.Finalized && !process.finalize_put_off) return real.Finalized(flag);
    *flag = process.finalize_put_off;  // without a library nothing has begun
    return MPI_SUCCESS;
}

bool world_model_is_on() {
    int initialized = 0, finalized = 0;
    real.Initialized(&initialized);
    real.Finalized(&finalized);
    return initialized && !finalized;
}

}  // namespace mpisec::shim
