/* A tool of MPI's profiling interface: counts sends and collectives, and says how many at the end. */
#include <mpi.h>
#include <stdio.h>

static int sends, collectives;

int MPI_Send(const void* buf, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
    ++sends;
    return PMPI_Send(buf, count, type, to, tag, comm);
}

int MPI_Allreduce(const void* from, void* to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    ++collectives;
    return PMPI_Allreduce(from, to, count, type, op, comm);
}

int MPI_Finalize(void) {
    printf("tool: %d sends, %d collectives\n", sends, collectives);
    fflush(stdout);
    return PMPI_Finalize();
}
