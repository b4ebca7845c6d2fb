// How calls on a window wait: in MPIsec's progress loop (M5).
#pragma once

#include "shim/p2p/backoff.hpp"
#include "shim/rma/window.hpp"
#include "shim/runtime/watchdog.hpp"

namespace mpisec::shim::rma {

template <class Done>
int Window::wait(const char* call, Done done) {
    WaitScope waiting(call, MPI_ANY_SOURCE, MPI_ANY_TAG);
    Backoff backoff;
    while (true) {
        {
            Guard guard;
            // done() may itself find the failure, with nothing left to wait for.
            if (failure_ != MPI_SUCCESS || done()) return failure_;
        }
        progress();
        backoff.pause();
    }
}

}  // namespace mpisec::shim::rma
