/* Rank 0 streams argv[1] MiB to rank 1 in messages of 1 MiB; rank 1 prints bits per second. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BLOCK = 1 << 20, WARM_UP = 4 };

int main(int argc, char** argv) {
    int rank, blocks = WARM_UP + atoi(argv[1]);
    static char buffer[BLOCK];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double begin = 0;
    for (int i = 0; i < blocks; i++) {
        if (i == WARM_UP) begin = MPI_Wtime();
        if (rank == 0)
            MPI_Send(buffer, BLOCK, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        else
            MPI_Recv(buffer, BLOCK, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (rank == 1) printf("%.0f\n", (blocks - WARM_UP) * (double)BLOCK * 8 / (MPI_Wtime() - begin));
    MPI_Barrier(MPI_COMM_WORLD);
    usleep(20000); /* MPICH 4.0 hangs in Finalize without */
    MPI_Finalize();
    return 0;
}
