/* Puts with their flush, and an unlock after a put: how many messages they take is in the statistics (test_few_messages.py). */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL = 100, LARGE = 64, BYTES = 65536 };

int main(int argc, char** argv) {
    int rank;
    char* memory;
    MPI_Win win;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Win_allocate(LARGE * BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    memset(memory, 0, LARGE * BYTES);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        char* data = malloc(BYTES);
        for (int i = 0; i < SMALL; ++i) {
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, MPI_MODE_NOCHECK, win);
            memset(data, i, 8);
            MPI_Put(data, 8, MPI_BYTE, 1, 8 * i, 8, MPI_BYTE, win);
            MPI_Win_flush(1, win);
            MPI_Win_unlock(1, win);
        }
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
        memset(data, 7, BYTES);
        for (int i = 1; i < LARGE; ++i) MPI_Put(data, BYTES, MPI_BYTE, 1, i * BYTES, BYTES, MPI_BYTE, win);
        MPI_Win_unlock(1, win);
        free(data);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    int wrong = 0;
    for (int i = 0; rank == 1 && i < 8 * SMALL; ++i) wrong += memory[i] != i / 8;
    for (int i = BYTES; rank == 1 && i < LARGE * BYTES; ++i) wrong += memory[i] != 7;
    if (rank == 1) printf("%d wrong\n", wrong);
    MPI_Win_free(&win);
    return MPI_Finalize();
}
