// What the shim of one process knows: settings, the job, and the lock that MPI_THREAD_MULTIPLE programs need
// (M10).
#pragma once

#include <functional>

#include "shim/process/process.hpp"

namespace mpisec::shim {

inline constexpr State& state = process.state;

const config::Settings& settings();

/// MPI_COMM_SELF, or what stands for it in a process that has not called MPI_Init.
inline MPI_Comm self_comm() {
    return process.world_begun ? process.constants.comm_self : state.private_self;
}

/// The engine, started on first use.
engine::Engine& engine_of_process();

/// Serializes the shim's own state. Only MPI_THREAD_MULTIPLE programs pay for it; recursive, because an error handler that the MPI library
/// runs below MPIsec may communicate. Never held while the MPI library may block.
class Guard {
  public:
    Guard() : holds_(state.thread_multiple) {
        if (holds_) mutex().lock();
    }
    ~Guard() {
        if (holds_) leave();
    }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

  private:
    friend class GuardPause;
    static RecursiveMutex& mutex();  ///< not inline: few programs get there
    static void leave();
    const bool holds_;  ///< another thread may set thread_multiple meanwhile
};

/// Gives the Guard back while it lives, for a procedure of the program's that may wait for a thread that is inside MPI. To be used by a
/// thread that has the Guard, where others may enter. Does nothing where that thread has it more than once: the code in between does not
/// expect others.
class GuardPause {
  public:
    explicit GuardPause(bool wanted)
        : pauses_(wanted && state.thread_multiple && Guard::mutex().depth() == 1) {
        if (pauses_) Guard::mutex().unlock();
    }
    ~GuardPause() {
        if (pauses_) Guard::mutex().lock();
    }
    GuardPause(const GuardPause&) = delete;
    GuardPause& operator=(const GuardPause&) = delete;

  private:
    bool pauses_;
};

/// Calls `free`, a procedure of the library's, once this thread has given the Guard back: it may delete attributes, and procedures of the
/// program's that do that may wait for a thread that is inside MPI.
void free_without_guard(std::function<void()> free);

}  // namespace mpisec::shim
