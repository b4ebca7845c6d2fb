/* Who serves a window while its rank computes:  progress_thread LEVEL SECONDS
 *
 * LEVEL: multiple or single. Rank 0 puts a value into the last rank's window, under a lock, and adds to another.
 * That rank calls no MPI until it sees them, or for so many seconds. It prints "served" or "not served". */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char** argv) {
    int rank, size, provided;
    if (argc < 3) return 2;
    MPI_Init_thread(NULL, NULL, strcmp(argv[1], "multiple") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE,
                    &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    volatile int* cells;
    MPI_Win window;
    MPI_Win_allocate(2 * sizeof *cells, sizeof *cells, MPI_INFO_NULL, MPI_COMM_WORLD, &cells, &window);
    cells[0] = cells[1] = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        const int value = 4711, one = 1;
        int before = -1, back = 0;
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, size - 1, 0, window);
        MPI_Fetch_and_op(&one, &before, MPI_INT, size - 1, 1, MPI_SUM, window);
        MPI_Put(&value, 1, MPI_INT, size - 1, 0, 1, MPI_INT, window);
        MPI_Win_flush(size - 1, window);
        MPI_Get(&back, 1, MPI_INT, size - 1, 0, 1, MPI_INT, window);
        MPI_Win_unlock(size - 1, window);
        if (before != 0 || back != value) MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (rank == size - 1) {
        for (int i = 0; i < atoi(argv[2]) * 100 && (cells[0] != 4711 || cells[1] != 1); ++i) usleep(10000);
        printf("%s\n", cells[0] == 4711 && cells[1] == 1 ? "served" : "not served");
        fflush(stdout);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_free(&window);
    MPI_Finalize();
    return 0;
}
