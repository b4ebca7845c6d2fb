/* Persistent collectives as Open MPI 4 named them before MPI 4 did. */
#include <mpi.h>

#include <mpi-ext.h> /* needs the other */
#include <stdio.h>
#include <string.h>

enum { BYTES = 4096 };

int main(int argc, char** argv) {
    static char text[BYTES], all[16 * BYTES];
    int rank, size, wrong = 0, one = 1, sum = 0;
    MPI_Request requests[3];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPIX_Bcast_init(text, BYTES, MPI_BYTE, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
    MPIX_Allgather_init(text, BYTES, MPI_BYTE, all, BYTES, MPI_BYTE, MPI_COMM_WORLD, MPI_INFO_NULL,
                        &requests[1]);
    MPIX_Allreduce_init(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[2]);
    for (int round = 0; round < 3; ++round) {
        memset(text, 0, BYTES);
        for (int i = 0; rank == 0 && i + 17 <= BYTES; i += 17) memcpy(text + i, "EARLIER-NAME-MARK", 17);
        for (int i = 0; i < 3; ++i) {
            MPI_Start(&requests[i]);
            MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        }
        wrong += memcmp(text, "EARLIER-NAME-MARK", 17) != 0 || sum != size ||
                 memcmp(all + (size - 1) * BYTES, text, BYTES) != 0;
    }
    for (int i = 0; i < 3; ++i) MPI_Request_free(&requests[i]);
    printf(wrong ? "wrong\n" : "right\n");
    fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return wrong;
}
