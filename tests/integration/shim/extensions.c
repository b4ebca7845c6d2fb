/* MPIX_Request_is_complete, an extension of MPICH's, of a receive before and after its message has come. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
    int rank, size, in = -1, other;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;
    MPI_Irecv(&in, 1, MPI_INT, left, 71, MPI_COMM_WORLD, &request);
    const int early = MPIX_Request_is_complete(request);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Send(&rank, 1, MPI_INT, right, 71, MPI_COMM_WORLD);
    while (!MPIX_Request_is_complete(request))
        MPI_Iprobe(left, 72, MPI_COMM_WORLD, &other, MPI_STATUS_IGNORE);
    printf("%d: early %d, got %s\n", rank, early, in == left ? "it" : "something else");
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
