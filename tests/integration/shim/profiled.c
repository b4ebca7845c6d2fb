/* Three messages of a marker from each rank to the next, and two sums. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv) {
    char text[64] = "PROFILED-MARK", got[64];
    int rank, size, one = 1, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < 3; ++i) {
        MPI_Request request;
        MPI_Irecv(got, 64, MPI_CHAR, (rank + size - 1) % size, 0, MPI_COMM_WORLD, &request);
        MPI_Send(text, 64, MPI_CHAR, (rank + 1) % size, 0, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < 2; ++i) MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return strcmp(got, text) != 0 || sum != size;
}
