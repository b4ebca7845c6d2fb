/* Messages of all kinds that MPISEC_TRACE records: small ones, large ones (blocking, and two at a time), a collective. What
 * they hold is told from a trace's own words. trace LARGE_BYTES */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char** argv) {
    int rank, bytes = atoi(argv[1]), number = 7, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char* buffers[2];
    for (int i = 0; i < 2; ++i) {
        buffers[i] = calloc(1, (size_t)bytes + 16);
        for (int at = 0; rank == 0 && at + 16 <= bytes; at += 16)
            memcpy(buffers[i] + at, "SECRETSECRETSECR", 16);
    }
    MPI_Request requests[2];
    if (rank == 0) {
        MPI_Send(&number, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
        MPI_Send(buffers[0], bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
        for (int i = 0; i < 2; ++i)
            MPI_Isend(buffers[i], bytes, MPI_BYTE, 1, 2, MPI_COMM_WORLD, requests + i);
    } else {
        MPI_Recv(&number, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(buffers[0], bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < 2; ++i)
            MPI_Irecv(buffers[i], bytes, MPI_BYTE, 0, 2, MPI_COMM_WORLD, requests + i);
    }
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Allreduce(&number, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (sum != 14 || memcmp(buffers[1], "SECRETSECRETSECR", 16) != 0) MPI_Abort(MPI_COMM_WORLD, 1);
    free(buffers[0]), free(buffers[1]);
    return MPI_Finalize();
}
