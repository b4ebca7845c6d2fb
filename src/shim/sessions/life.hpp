// What protection needs in a process, whichever comes first: MPI_Init, a session's communicator, or a world
// that is spawned or connected to; and how protection ends.
#pragma once

#include <mpi.h>

#include <string>

namespace mpisec::shim {

struct Realm;

/// Reads the settings, unless they have been read already. Returns an empty string, or what is wrong with them. In a process that has
/// not called MPI_Init all threads may call MPI from here on.
std::string load_settings();

/// Sets up MPIsec's error codes and its communicators of this process alone, and finds out which tags the library has
/// (`comm`: any communicator). Does nothing the second time.
void make_ready(MPI_Comm comm);

/// Called when the world may have ended, and sessions go on or begin without it (MPI 4.1, section 11.3). The phase stays: calls that
/// still name the world are refused as before. Does nothing where the world has not ended.
void begin_after_world();

/// Protects calls from here on, in a process that has not called MPI_Init or whose world is on one node. Waits for another thread's
/// MPI_Init.
void close_gate();

/// Frees what MPIsec has of realms whose last communicator the program has freed.
void close_unused_realms();

/// Frees what MPIsec has of a realm of which the program gets no communicator, because of the error `code`, and wipes its keys. Returns `code`.
int give_up_realm(Realm& realm, int code);

/// Frees what MPIsec has of groups that are proven to be on one node, in a process that has nothing to protect.
void forget_one_node_groups();

/// Ends all operations, wipes keys and joins threads (M14). Called in MPI_Finalize, and with the last session of a
/// process that has not called MPI_Init.
void end_protection();

}  // namespace mpisec::shim
