/* The ranks meet, or for "split" tell each other their colours, before MPI makes a communicator, and what the second one sends meanwhile is
 * attacked. Every rank says how its call ended; the job ends without MPI_Finalize, because MPI may have made what no rank has. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "armed.h"

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank, frames, segments;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) arm();
    MPI_Comm made;
    const int code = argc > 1 && strcmp(argv[1], "split") == 0
                         ? MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &made)
                         : MPI_Comm_dup(MPI_COMM_WORLD, &made);
    if (rank == 1) disarm(&frames, &segments);
    printf("rank %d: %s\n", rank, code == MPI_SUCCESS ? "made" : made == MPI_COMM_NULL ? "error" : "OTHER");
    fflush(stdout);
    sleep(4); /* others may be on their way out of the call */
    _exit(0);
}
