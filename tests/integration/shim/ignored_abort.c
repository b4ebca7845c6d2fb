/* Rank 0 ignores SIGABRT and waits for a message that nobody sends. */
#include <mpi.h>
#include <signal.h>
#include <unistd.h>

int main(int argc, char** argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    signal(SIGABRT, SIG_IGN);
    if (rank == 0) MPI_Recv(&rank, 1, MPI_INT, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    sleep(60);
    MPI_Finalize();
}
