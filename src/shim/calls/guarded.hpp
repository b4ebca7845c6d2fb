// Procedures that reach processes of which MPIsec knows nothing yet.
#pragma once

#include <mpi.h>

namespace mpisec::shim {

// dynamic_calls.cpp
int Comm_spawn(const char* command, char** argv, int maxprocs, MPI_Info info, int root, MPI_Comm comm,
               MPI_Comm* intercomm, int* errcodes);
int Comm_spawn_multiple(int count, char** commands, char*** argvs, const int* maxprocs, const MPI_Info* infos,
                        int root, MPI_Comm comm, MPI_Comm* intercomm, int* errcodes);
int Comm_accept(const char* port, MPI_Info info, int root, MPI_Comm comm, MPI_Comm* newcomm);
int Comm_connect(const char* port, MPI_Info info, int root, MPI_Comm comm, MPI_Comm* newcomm);
int Comm_join(int socket, MPI_Comm* newcomm);
int Comm_get_parent(MPI_Comm* parent);
int Publish_name(const char* service, MPI_Info info, const char* port);
int Lookup_name(const char* service, MPI_Info info, char* port);
int Unpublish_name(const char* service, MPI_Info info, const char* port);

// session_calls.cpp
int Comm_create_from_group(MPI_Group group, const char* stringtag, MPI_Info info, MPI_Errhandler errhandler,
                           MPI_Comm* newcomm);
int Intercomm_create_from_groups(MPI_Group local_group, int local_leader, MPI_Group remote_group,
                                 int remote_leader, const char* stringtag, MPI_Info info,
                                 MPI_Errhandler errhandler, MPI_Comm* newcomm);
int Session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session* session);
int Session_finalize(MPI_Session* session);

}  // namespace mpisec::shim
