// Threads of MPIsec's own beside the program's.
#pragma once

#include <system_error>
#include <thread>
#include <utility>

#include "base/signals_blocked.hpp"

namespace mpisec::shim {

/// Starts `body` in a thread that blocks all signals. False where the system gives no thread.
template <class Body>
bool start_thread(std::thread& thread, Body body) {
    const SignalsBlocked signals;
    try {
        thread = std::thread(std::move(body));
    } catch (const std::system_error&) {
        return false;
    }
    return true;
}

}  // namespace mpisec::shim
