/* Communicators with an error handler of their own are freed while messages are under way, more of them than the library can have at a time. */
#include <mpi.h>
#include <stdio.h>

enum { ROUNDS = 2500 };

static void handle(MPI_Comm* comm, int* code, ...) {
    (void)comm, (void)code;
}

int main(int argc, char** argv) {
    int rank, size, code = MPI_SUCCESS, right = 1, round = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    const int peer = size - 1 - rank;
    for (; round < ROUNDS; ++round) {
        MPI_Comm comm, other;
        MPI_Errhandler handler;
        MPI_Request requests[2];
        int got = -1;
        if ((code = MPI_Comm_dup(MPI_COMM_WORLD, &comm)) != MPI_SUCCESS) break;
        if ((code = MPI_Comm_dup(comm, &other)) != MPI_SUCCESS) break;
        MPI_Comm_create_errhandler(handle, &handler);
        MPI_Comm_set_errhandler(comm, handler);
        MPI_Errhandler_free(&handler);
        MPI_Irecv(&got, 1, MPI_INT, peer, 1, comm, &requests[0]);
        MPI_Isend(&rank, 1, MPI_INT, peer, 1, comm, &requests[1]);
        MPI_Comm_free(&comm);
        MPI_Comm_free(&other);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        right = right && got == peer;
    }
    printf("rank %d: %d rounds %s\n", rank, round, right ? "right" : "WRONG");
    MPI_Finalize();
    return code != MPI_SUCCESS;
}
