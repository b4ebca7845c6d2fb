/* Prints how long constructors of communicators take with the following MPI_Comm_free, in microseconds on the
 * slowest rank, median over the repetitions (first argument, 200), each after a barrier; a line of JSON each.
 * Run with alternating builds to compare them: 4 nodes with 2 ranks each, say. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int rank, size;
static MPI_Comm grid;

static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void dup(MPI_Comm* made) {
    MPI_Comm_dup(MPI_COMM_WORLD, made);
}
static void split(MPI_Comm* made) {
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, made);
}
static void cart_sub(MPI_Comm* made) {
    const int remain[2] = {1, 0};
    MPI_Cart_sub(grid, remain, made);
}

static int by_value(const void* a, const void* b) {
    const double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

static void measure(const char* what, void (*make)(MPI_Comm*), int repetitions) {
    double* times = malloc((size_t)repetitions * sizeof *times);
    for (int i = -5; i < repetitions; ++i) {
        MPI_Comm made;
        MPI_Barrier(MPI_COMM_WORLD);
        const double start = now_us();
        make(&made);
        MPI_Comm_free(&made);
        const double mine = now_us() - start;
        double longest;
        MPI_Allreduce(&mine, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        if (i >= 0) times[i] = longest;
    }
    qsort(times, (size_t)repetitions, sizeof *times, by_value);
    if (rank == 0) printf("{\"what\": \"%s\", \"time_us\": %.1f}\n", what, times[repetitions / 2]);
    free(times);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int repetitions = argc > 1 ? atoi(argv[1]) : 200;
    int dims[2] = {0, 0}, periods[2] = {1, 1};
    MPI_Dims_create(size, 2, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
    measure("MPI_Comm_dup", dup, repetitions);
    measure("MPI_Comm_split", split, repetitions);
    measure("MPI_Cart_sub", cart_sub, repetitions);
    MPI_Comm_free(&grid);
    MPI_Finalize();
    return 0;
}
