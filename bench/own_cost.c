/* Nanoseconds that MPIsec adds to MPI_Send and to MPI_Recv of small messages, the network excluded
 * (stopwatch.c, preloaded). The stopwatch's own cost is measured with messages that MPIsec passes through (to
 * the rank itself) and taken off.
 *
 * own_cost [--sizes 0,16,256,1024] [--rounds N]
 * One line of JSON per size: {"bytes", "seal_ns", "open_ns", "both_ns"}: medians over rounds of 1000 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MESSAGES = 1000, MAX_ROUNDS = 501, TAG = 78 };

static double (*inside)(void);

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static int ascending(const void* a, const void* b) {
    double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

/* Mean nanoseconds per message outside the MPI library, on the sending or the receiving side. */
static double outside(int sending, char* buf, int bytes, int peer) {
    double total = 0, in_library = 0;
    for (int i = 0; i < MESSAGES; ++i) {
        inside();
        double start = now();
        if (sending)
            MPI_Send(buf, bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD);
        else
            MPI_Recv(buf, bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        total += now() - start;
        in_library += inside();
    }
    return (total - in_library) / MESSAGES;
}

int main(int argc, char** argv) {
    const char* sizes = "0,16,256,1024";
    int rounds = 21, rank, size;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--sizes") == 0) sizes = argv[i + 1];
        if (strcmp(argv[i], "--rounds") == 0) rounds = atoi(argv[i + 1]);
    }
    if (rounds < 1 || rounds > MAX_ROUNDS)
        return fprintf(stderr, "own_cost: --rounds is 1 to %d\n", MAX_ROUNDS), 2;
    *(void**)&inside = dlsym(RTLD_DEFAULT, "mpisec_bench_inside");
    if (!inside) return fprintf(stderr, "own_cost: preload the stopwatch (bench/stopwatch.c)\n"), 2;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int peer = rank == 0 ? size - 1 : 0;
    char* list = strdup(sizes);
    for (char* item = strtok(list, ","); item; item = strtok(NULL, ",")) {
        int bytes = atoi(item);
        char* buf = calloc(1, (size_t)bytes + 1);
        static double costs[MAX_ROUNDS];
        for (int round = 0; round < rounds; ++round) {
            /* The stopwatch alone: the same calls to MPI_PROC_NULL, which MPIsec passes through. */
            double watch = outside(rank == 0, buf, bytes, MPI_PROC_NULL);
            costs[round] = rank == 0 || rank == size - 1 ? outside(rank == 0, buf, bytes, peer) - watch : 0;
            MPI_Barrier(MPI_COMM_WORLD);
        }
        qsort(costs, (size_t)rounds, sizeof *costs, ascending);
        double mine = costs[rounds / 2], theirs = 0;
        if (rank == size - 1) MPI_Send(&mine, 1, MPI_DOUBLE, 0, TAG, MPI_COMM_WORLD);
        if (rank == 0) {
            MPI_Recv(&theirs, 1, MPI_DOUBLE, size - 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            printf("{\"bytes\": %d, \"seal_ns\": %.0f, \"open_ns\": %.0f, \"both_ns\": %.0f}\n", bytes, mine,
                   theirs, mine + theirs);
            fflush(stdout);
        }
        free(buf);
    }
    free(list);
    MPI_Finalize();
    return 0;
}
