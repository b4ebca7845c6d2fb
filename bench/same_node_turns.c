/* What a message within a node costs on a machine that others use too: blocks of a few exchanges between rank 0 and 1, plain and
 * verified by turns, so short that many find both ranks running; of each kind the time that a share of the blocks stays below.
 *
 * same_node_turns SIZES SECONDS      on two nodes with two ranks each, so that messages are verified
 * One line of JSON per size: microseconds one way of the lowest 3, 10 and 25 % of the blocks, and their ratios. */
#include "idle.h"
#include "underneath.h"

#include <string.h>

enum { TAG = 77, MOST_BLOCKS = 100000 };

static int (*Send[KINDS])(const void*, int, MPI_Datatype, int, int, MPI_Comm) = {NULL, MPI_Send};
static int (*Recv[KINDS])(void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status*) = {NULL, MPI_Recv};
static int rank, peer;
static char *out, *in;
static double times[KINDS][MOST_BLOCKS];

static double one_way(enum kind kind, int bytes, int iterations) {
    const double start = MPI_Wtime();
    for (int i = 0; i < iterations; ++i) {
        if (rank == 0) Send[kind](out, bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD);
        Recv[kind](in, bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank != 0) Send[kind](out, bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD);
    }
    return (MPI_Wtime() - start) / iterations * 1e6 / 2;
}

/* Whether rank 0 says that there is time left. */
static int goes_on(double end) {
    int more = MPI_Wtime() < end;
    if (rank == 0)
        MPI_Send(&more, 1, MPI_INT, peer, TAG, MPI_COMM_WORLD);
    else
        MPI_Recv(&more, 1, MPI_INT, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return more;
}

static void print(int bytes, int blocks) {
    static const double shares[] = {0.03, 0.1, 0.25};
    const double plain = median(times[PLAIN], blocks),
                 ours = median(times[ORDINARY], blocks); /* sorts them */
    printf("{\"bytes\": %d, \"blocks\": %d", bytes, blocks);
    for (unsigned i = 0; i < sizeof shares / sizeof *shares; ++i) {
        const int at = (int)(blocks * shares[i]);
        printf(", \"p%.0f\": {\"plain_us\": %.3f, \"time_us\": %.3f, \"ratio\": %.3f}", shares[i] * 100,
               times[PLAIN][at], times[ORDINARY][at], times[ORDINARY][at] / times[PLAIN][at]);
    }
    printf(", \"median\": {\"plain_us\": %.3f, \"time_us\": %.3f, \"ratio\": %.3f}}\n", plain, ours,
           ours / plain);
    fflush(stdout);
}

static void measure(int bytes, double seconds) {
    const int iterations = bytes > 100000 ? 3 : 24;
    int blocks = 0;
    out = calloc((size_t)bytes, 1), in = calloc((size_t)bytes, 1);
    for (int kind = PLAIN; kind < KINDS; ++kind) one_way(kind, bytes, 20);
    const double end = MPI_Wtime() + seconds;
    do {
        for (int i = 0; i < 4; ++i, ++blocks) {
            const enum kind first = blocks & 1 ? ORDINARY : PLAIN, second = blocks & 1 ? PLAIN : ORDINARY;
            times[first][blocks] = one_way(first, bytes, iterations);
            times[second][blocks] = one_way(second, bytes, iterations);
        }
    } while (goes_on(end) && blocks + 4 <= MOST_BLOCKS);
    if (rank == 0) print(bytes, blocks);
    free(out), free(in);
}

int main(int argc, char** argv) {
    int size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size < 2 || argc < 3) {
        fprintf(stderr, "same_node_turns SIZES SECONDS, with two ranks or more\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    peer = rank == 0 ? 1 : 0;
    *(void**)&Send[PLAIN] = underneath("PMPI_Send"), *(void**)&Recv[PLAIN] = underneath("PMPI_Recv");
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank < 2) {
        for (char* item = strtok(argv[1], ","); item; item = strtok(NULL, ","))
            measure(atoi(item), atof(argv[2]));
        if (rank == 0) call_sleepers(size, peer, TAG);
    } else {
        sleep_until_called(TAG);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
