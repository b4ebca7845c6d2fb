// What protection needs of a process, whichever comes first: MPI_Init, a session's communicator, or a world
// that is spawned or connected to; and its end.
#pragma once

#include <mpi.h>

#include <string>

namespace mpisec::shim {

/// Reads the settings, unless they are read. Empty, or what is wrong with them. In a process that has not called MPI_Init all threads
/// may call MPI from here on.
std::string load_settings();

/// MPIsec's error codes, its communicators of this process alone, what tags the library has (`comm`: any
/// communicator). Does nothing the second time.
void make_ready(MPI_Comm comm);

/// The world has ended, and sessions go on or begin without it (MPI 4.1, section 11.3). The phase stays: calls that still speak of the
/// world are refused as before. Does nothing where the world has not ended.
void begin_after_world();

/// From here on calls are protected, in a process that has not called MPI_Init or whose world is on one node. Waits for another thread's
/// MPI_Init.
void close_gate();

/// Of a realm whose last communicator the program has freed, what MPIsec has.
void close_unused_realms();

/// Of groups that are proven to be on one node, in a process that has nothing to protect.
void forget_one_node_groups();

/// All operations end, keys are wiped, threads joined (M14): in MPI_Finalize, and with the last session of a
/// process that has not called MPI_Init.
void end_protection();

}  // namespace mpisec::shim
