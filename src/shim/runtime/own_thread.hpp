// Threads of MPIsec's own beside the program's.
#pragma once

#include <signal.h>

#include <system_error>
#include <thread>
#include <utility>

namespace mpisec::shim {

/// Starts `body` in a thread that blocks all signals: the program's signals are for the program's threads. False where the system gives no
/// thread.
template <class Body>
bool start_thread(std::thread& thread, Body body) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = true;
    try {
        thread = std::thread(std::move(body));
    } catch (const std::system_error&) {
        started = false;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return started;
}

}  // namespace mpisec::shim
