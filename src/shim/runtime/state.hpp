// What the shim of one process knows: settings, the job, and the lock that MPI_THREAD_MULTIPLE programs need
// (M10).
#pragma once

#include <memory>
#include <mutex>

#include "config/settings.hpp"
#include "engine/engine.hpp"
#include "shim/runtime/world.hpp"

namespace mpisec::shim {

struct State {
    config::Settings settings;
    World world;
    std::unique_ptr<engine::Engine> engine;  ///< made with the first large message
    bool thread_multiple = false;
    bool yield_while_waiting = false;  ///< who waits gives its core to others: MPISEC_YIELD
    bool ending = false;  ///< in MPI_Finalize, after the communicators that all ranks free in one order
    int tag_upper_bound = 32767;
    bool stats = false;
    MPI_Comm private_self{};  ///< where MPIsec talks to itself (probe.cpp)
    MPI_Request never{};      ///< of a receive that nothing matches: testing it lets MPI make progress
};

/// Nothing of the shim is destroyed when the process exits, neither this nor its other static objects: a
/// destructor that calls MPI would, in a forked child that calls exit(), use connections that are its
/// parent's, and in a program that leaves without MPI_Finalize, an MPI library that may be gone.
union NeverDestroyedState {
    State state;
    NeverDestroyedState() : state{} {}
    ~NeverDestroyedState() {}
};
extern NeverDestroyedState never_destroyed_state;
inline constexpr State& state = never_destroyed_state.state;

const config::Settings& settings();

/// The engine, started on first use.
engine::Engine& engine_of_process();

/// Serializes the shim's own state. Only MPI_THREAD_MULTIPLE programs pay for it; recursive, because an error
/// handler that the MPI library runs under us may communicate. Never held while the MPI library may block.
class Guard {
  public:
    Guard() {
        if (state.thread_multiple) mutex().lock();
    }
    ~Guard() {
        if (state.thread_multiple) mutex().unlock();
    }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

  private:
    static std::recursive_mutex& mutex();
};

}  // namespace mpisec::shim
