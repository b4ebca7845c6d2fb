/* Prints how long MPI_Init took on the slowest rank, and MPI_Init with the first MPI_Barrier, in
 * microseconds, as lines of JSON; then ends. Open MPI connects nodes when a message first needs it: what
 * MPIsec's key exchange makes it do in MPI_Init, plain does in the barrier. */
#include <mpi.h>
#include <stdio.h>
#include <time.h>

static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

int main(int argc, char** argv) {
    const double start = now_us();
    MPI_Init(&argc, &argv);
    double mine[2] = {now_us() - start}, longest[2];
    MPI_Barrier(MPI_COMM_WORLD);
    mine[1] = now_us() - start;
    int rank;
    MPI_Reduce(mine, longest, 2, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        printf("{\"what\": \"MPI_Init\", \"time_us\": %.1f}\n", longest[0]);
        printf("{\"what\": \"and MPI_Barrier\", \"time_us\": %.1f}\n", longest[1]);
    }
    MPI_Finalize();
    return 0;
}
