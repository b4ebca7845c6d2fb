/* For test_conformance.py: what the runner must tell apart. Each rank sends its neighbour its number; rank 0
   then says how it went, in the manner that the first argument names. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int sealed(void) {
    const char* preloaded = getenv("LD_PRELOAD");
    return preloaded && strstr(preloaded, "mpisec");
}

int main(int argc, char** argv) {
    const char* how = argc > 1 ? argv[1] : "";
    int rank, size, got = -1;
    struct timespec now;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (strcmp(how, "silent") != 0)
        MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 0, &got, 1, MPI_INT, (rank + size - 1) % size, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    clock_gettime(CLOCK_REALTIME, &now);
    if (rank == 0) {
        printf("got %d\n", got);
        if (strcmp(how, "noisy") == 0) printf("elapsed %ld s\n", now.tv_nsec);
        if (strcmp(how, "different") == 0) printf("the sum is %d\n", 6 + sealed());
        if (strcmp(how, "noisy-and-different") == 0)
            printf("%ld: the sum is %d\n", now.tv_nsec, 6 + sealed());
    }
    if (strcmp(how, "hangs") == 0 && sealed()) MPI_Barrier(rank == 0 ? MPI_COMM_WORLD : MPI_COMM_SELF);
    if (strcmp(how, "stream") == 0) {
        MPI_Comm streams;
        MPIX_Stream_comm_create(MPI_COMM_WORLD, MPIX_STREAM_NULL, &streams);
        MPI_Comm_free(&streams);
    }
    MPI_Finalize();
    return strcmp(how, "fails") == 0 || (strcmp(how, "fails-sealed") == 0 && sealed());
}
