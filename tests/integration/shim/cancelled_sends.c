/* Rank 0 cancels many sends to rank 1, on another node, each between two that rank 1 receives, which have another tag or, with an
 * argument, the same one. The library below (cancels.c) lets the cancellation succeed. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { CANCELS = 10000, BETWEEN_ANSWERS = 50, CANCELLED_TAG = 77 };

int main(int argc, char** argv) {
    const int tag = argc > 1 ? CANCELLED_TAG : 1;
    int rank, value = 0, cancelled, failures = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < CANCELS && rank < 2; ++i) {
        MPI_Request request;
        MPI_Status status;
        if (rank == 0) {
            MPI_Isend(&i, 1, MPI_INT, 1, CANCELLED_TAG, MPI_COMM_WORLD, &request);
            MPI_Cancel(&request);
            MPI_Wait(&request, &status);
            MPI_Test_cancelled(&status, &cancelled);
            failures += !cancelled;
            MPI_Send(&i, 1, MPI_INT, 1, tag, MPI_COMM_WORLD);
            if (i % BETWEEN_ANSWERS == 0)
                MPI_Recv(&value, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(&value, 1, MPI_INT, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            failures += value != i;
            if (i % BETWEEN_ANSWERS == 0) MPI_Send(&i, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
        }
    }
    MPI_Finalize();
    printf("rank %d: %d failures\n", rank, failures);
    return failures != 0;
}
