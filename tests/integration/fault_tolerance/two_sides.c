/* MPIX_Comm_agree and MPIX_Comm_iagree on an inter-communicator of odd and even ranks: the bits that all of the other group have set. "ok"
 * from each. */
#include <mpi.h>
#ifdef OPEN_MPI
#include <mpi-ext.h>
#else
#define MPIX_Comm_iagree(comm, flag, request) (*(request) = MPI_REQUEST_NULL, MPIX_Comm_agree(comm, flag))
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
        int flag = ~(1 << rank), other = ~(1 << (rank + turn % 8)), theirs = 0;
        for (int i = 1 - rank % 2; i < size; i += 2) theirs |= 1 << i;
        MPI_Request request;
        MPIX_Comm_iagree(both, &other, &request);
        MPIX_Comm_agree(both, &flag);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (flag != ~theirs || other != ~(theirs << turn % 8)) {
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
