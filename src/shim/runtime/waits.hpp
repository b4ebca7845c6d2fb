// Procedures of the MPI library that may wait for another process, on objects that exist only inside a node (windows, files, buffers of a
// communicator). Inside the library nothing of MPIsec's moves, and the other process may first need one of this rank's large messages (M5).
// So before MPIsec calls the library, or instead of calling it, it waits in its own progress loop for what the library would wait for.
// gen/classes.toml says which way each procedure goes ("blocks"); the generated wrappers call these.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>
#include <vector>

#include "wire/frame.hpp"

namespace mpisec::shim {

/// Advances what is under way, once (operation.hpp): for calls that programs repeat until something has
/// happened.
void progress();

/// Which processes take part in the collective calls on a window or a file, and what tells their meetings from others.
struct Participants {
    std::vector<std::int32_t> members;  ///< world ranks
    wire::ContextId context{};
};
/// The participants for an object just made on `comm`. Every member makes the same objects in the same order.
Participants participants_of(MPI_Comm comm, const char* constructor);
/// The tag on the channel of a meeting in this context (progress_barrier.cpp).
int barrier_tag(const wire::ContextId& context);

/// The context of a meeting before a communicator is made from a group, under this name.
wire::ContextId group_context(const std::string& name);
/// For use before a communicator is made from a group, under this name: its members meet. Does nothing when one of them is not in
/// MPI_COMM_WORLD.
int progress_barrier_of_group(MPI_Group group, const char* name);

// Windows (windows.cpp). `made`: what the constructor returned.
int learn_window(int made, MPI_Comm comm, MPI_Win* win);
int progress_barrier_of_window(const char* call, MPI_Win win);
int Win_free(MPI_Win* win);
int Win_post(MPI_Group group, int assertion, MPI_Win win);
int Win_start(MPI_Group group, int assertion, MPI_Win win);
int Win_wait(MPI_Win win);
int Win_lock(int kind, int rank, int assertion, MPI_Win win);
int Win_unlock(int rank, MPI_Win win);
int Win_lock_all(int assertion, MPI_Win win);
int Win_unlock_all(MPI_Win win);

// Files (files.cpp)
int learn_file(int made, MPI_Comm comm, MPI_File* file);
int progress_barrier_of_file(const char* call, MPI_File file);
int File_close(MPI_File* file);

}  // namespace mpisec::shim
