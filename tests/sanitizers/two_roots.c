/* Both groups of an inter-communicator say that the root is theirs: a mistake that MPI libraries do not notice. Each rank seals a block as
 * the root; the two must not share a nonce. Ends without MPI_Finalize, where MPIsec would miss the blocks. */
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm own, between;
    MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &own);
    MPI_Intercomm_create(own, 0, MPI_COMM_WORLD, 1 - rank, 5, &between);
    char block[32] = "of this rank";
    MPI_Bcast(block, sizeof block, MPI_CHAR, MPI_ROOT, between);
    MPI_Barrier(MPI_COMM_WORLD);
    exit(0);
}
