// The phases of a process (mpi_library.hpp: Phase): what moves it from one to the next, and what a call meets in the rare ones.
#pragma once

#include "shim/pmpi/real.hpp"

namespace mpisec::shim {

/// From MPI_Init to protection: the thread that makes this object passes the gate, while all others wait there. False when this is not the
/// first MPI_Init: MPI itself refuses that.
class Starting {
  public:
    Starting();
    ~Starting();  ///< back to the phase before, unless end() was called
    Starting(const Starting&) = delete;
    Starting& operator=(const Starting&) = delete;
    explicit operator bool() const { return begun_; }
    bool closed_before() const { return previous_ == Phase::closed; }  ///< by a session
    void end(Phase next);                                              ///< waiting threads go on

  private:
    bool begin();
    bool begun_;
    Phase previous_ = Phase::before;
};

/// Whether this is a child of the process that called MPI_Init, however it was made. Asks the system, so it is too slow for every message.
bool in_child();

/// MPI_Initialized: false until the job is protected, because a program that asks may send at once. False in a forked child too, so that
/// code that "finalizes MPI if it is up" on the way out leaves the parent's connections alone.
int Initialized(int* flag);
/// MPI_Finalized: says what the program has called, though the library's own MPI_Finalize may be put off (calls/init.cpp).
int Finalized(int* flag);

/// Whether another thread is in MPI_Init. Exact with `life` held; wait_for_start() without it.
bool starts_elsewhere();
void wait_for_start();

/// In a process that has not called MPI_Init, or that found its whole world on this node: calls are protected
/// from here on. With `life` held.
void protect_from_now_on();

/// Sets the rank to show in messages, in a process that has not called MPI_Init.
void name_process(int rank);

/// Whether this is after MPI_Init and before the end of MPI_Finalize, as the MPI library sees it.
bool world_model_is_on();

/// Says that `procedure` was called in a child, and ends it.
[[noreturn]] void end_child(const char* procedure);

}  // namespace mpisec::shim
