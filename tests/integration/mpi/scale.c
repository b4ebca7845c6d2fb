/* Starts, sums the ranks by MPI_Allreduce, passes a number round a ring, ends. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
    int rank, size, sum, got;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 0, &got, 1, MPI_INT, (rank + size - 1) % size, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    int right = sum == size * (size - 1) / 2 && got == (rank + size - 1) % size, all_right;
    MPI_Reduce(&right, &all_right, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("%d of %d right\n", all_right, size);
    MPI_Finalize();
    return 0;
}
