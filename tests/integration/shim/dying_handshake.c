/* Below MPIsec: kills rank MPISEC_LAB_DIES by SIGKILL when it calls PMPI_Isend for the MPISEC_LAB_DIES_AT-th
 * time, from 1: in MPI_Init these calls are MPIsec's, for hellos and handshakes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

int PMPI_Isend(const void* buf, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
               MPI_Request* request) {
    static int (*real)(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
    static int calls;
    int rank;
    if (!real) *(void**)&real = dlsym(RTLD_NEXT, "PMPI_Isend");
    const char *dies = getenv("MPISEC_LAB_DIES"), *at = getenv("MPISEC_LAB_DIES_AT");
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (dies && at && rank == atoi(dies) && ++calls == atoi(at)) kill(getpid(), SIGKILL);
    return real(buf, n, type, to, tag, comm, request);
}
