// Procedures that are refused or passed through by a rule of their own ("check = hand" in gen/classes.toml);
// intercommunicator_calls.cpp, session_calls.cpp.
#pragma once

#include <mpi.h>

namespace mpisec::shim {

/// MPI_COMM_NULL is given as it is. A parent is another world that no keys were agreed on with: refused (S1).
int Comm_get_parent(MPI_Comm* parent);

// session_calls.cpp
int Comm_create_from_group(MPI_Group group, const char* stringtag, MPI_Info info, MPI_Errhandler errhandler,
                           MPI_Comm* newcomm);
int Session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session* session);
int Session_finalize(MPI_Session* session);

}  // namespace mpisec::shim
