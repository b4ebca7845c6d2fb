/* Prints how long MPI_Init took on the slowest rank, in microseconds, as a line of JSON; then ends. */
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
    const double mine = now_us() - start;
    double longest;
    int rank;
    MPI_Reduce(&mine, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) printf("{\"what\": \"MPI_Init\", \"time_us\": %.1f}\n", longest);
    MPI_Finalize();
    return 0;
}
