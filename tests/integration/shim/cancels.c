/* Below MPIsec: sends with tag 77 wait until they are cancelled, as on an MPI library that has not begun to
 * send (most never let MPI_Cancel of a send succeed). They are receives of a message that nobody sends. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>

int PMPI_Isend(const void* buf, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
               MPI_Request* request) {
    static int (*real)(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
    static char nothing;
    if (!real) *(void**)&real = dlsym(RTLD_NEXT, "PMPI_Isend");
    if (tag == 77) {
        int (*receive)(void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
        *(void**)&receive = dlsym(RTLD_NEXT, "PMPI_Irecv");
        return receive(&nothing, 0, MPI_BYTE, 0, 4242, MPI_COMM_SELF, request);
    }
    return real(buf, n, type, to, tag, comm, request);
}
