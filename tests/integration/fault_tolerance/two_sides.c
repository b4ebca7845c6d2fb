/* MPIX_Comm_agree and MPIX_Comm_iagree on an inter-communicator of odd and even ranks: the bits that all of both groups have set. "ok" from
 * each. */
#include <mpi.h>
#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif
#include <stdio.h>

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm side, both;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &side);
    MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, 1 - rank % 2, 3, &both);
    for (int turn = 0; turn < 20; ++turn) {
        int flag = ~(1 << rank), other = ~(1 << (rank + turn % 8)), none = ~((1 << size) - 1);
        MPI_Request request;
        MPIX_Comm_iagree(both, &other, &request);
        MPIX_Comm_agree(both, &flag);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (flag != none || other != ~(((1 << size) - 1) << turn % 8)) {
            fprintf(stderr, "rank %d: %x, %x\n", rank, (unsigned)flag, (unsigned)other);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
    MPI_Comm_free(&both);
    MPI_Comm_free(&side);
    printf("ok %d\n", rank);
    MPI_Finalize();
    return 0;
}
