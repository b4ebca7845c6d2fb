/* Sums whose last bits depend on the order of summation, while the ranks come at random times. Every rank
 * prints a hash of what it got. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 20000 };

static int rank, size;
static uint64_t hash = 14695981039346656037u;

static void take(const double* values, int n) {
    const unsigned char* bytes = (const unsigned char*)values;
    for (size_t i = 0; i < (size_t)n * sizeof(double); ++i) hash = (hash ^ bytes[i]) * 1099511628211u;
}

static void come_late(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    usleep((unsigned)((now.tv_nsec / 1000 + getpid() * 7919) % 3000));
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    static double in[MOST], out[MOST];
    unsigned state = 4711u + (unsigned)rank;
    for (int i = 0; i < MOST; ++i) {
        state = state * 1664525u + 1013904223u;
        in[i] = ((double)state / 3.0 - 7e8) * (i % 3 ? 1e-9 : 1e9);
    }
    static const int counts[] = {1, 40, 3000, MOST};
    for (int c = 0; c < 4; ++c) {
        const int n = counts[c], part = n / size;
        come_late();
        MPI_Allreduce(in, out, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        take(out, n);
        come_late();
        MPI_Reduce(in, out, n, MPI_DOUBLE, MPI_SUM, size - 1, MPI_COMM_WORLD);
        if (rank == size - 1) take(out, n);
        come_late();
        MPI_Scan(in, out, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        take(out, n);
        come_late();
        MPI_Exscan(in, out, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        if (rank > 0) take(out, n);
        come_late();
        MPI_Reduce_scatter_block(in, out, part, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        take(out, part);
    }
    printf("rank %d %016llx\n", rank, (unsigned long long)hash);
    fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
