/* Bandwidth and message rate of several pairs at once: rank i of the first half sends windows of messages to
 * rank i + n/2, which answers each window with four bytes, as the OSU suite's multiple-pair test does; with
 * --both-ways 1 both send one at the same time, as that suite's bidirectional test does. Times are
 * microseconds per window, the mean over the pairs (interleaving.h says how plain and sealed take turns). All
 * messages of a window leave one buffer and arrive in one, which is that test's default (MPI promises nothing
 * of what is in it then), with --multiple-buffers 1 each has its own.
 *
 * mbw [--sizes 4,16384,…] [--window 64] [--blocks N] [--block-us T] [--ordinary 1] [--multiple-buffers 1]
 *     [--both-ways 1]
 * One line of JSON per size on rank 0. A last window, of a buffer per message, is compared with what was
 * sent. */
#include "interleaving.h"

#include <mpi.h>

enum { TAG = 77, MAX_WINDOW = 256, ANSWER = 4 };

static int (*Send[KINDS])(const void*, int, MPI_Datatype, int, int, MPI_Comm) = {NULL, MPI_Send};
static int (*Recv[KINDS])(void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status*) = {NULL, MPI_Recv};
static int (*Isend[KINDS])(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*) = {NULL,
                                                                                                MPI_Isend};
static int (*Irecv[KINDS])(void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*) = {NULL, MPI_Irecv};
static int (*Waitall[KINDS])(int, MPI_Request*, MPI_Status*) = {NULL, MPI_Waitall};
static int (*Allreduce)(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm) = MPI_Allreduce;

static int rank, size, peer, window, multiple_buffers, sends, receives;
static char *out, *in;

static void look_up(void) {
    *(void**)&Send[PLAIN] = underneath("PMPI_Send");
    *(void**)&Recv[PLAIN] = underneath("PMPI_Recv");
    *(void**)&Isend[PLAIN] = underneath("PMPI_Isend");
    *(void**)&Irecv[PLAIN] = underneath("PMPI_Irecv");
    *(void**)&Waitall[PLAIN] = underneath("PMPI_Waitall");
    *(void**)&Allreduce = underneath("PMPI_Allreduce");
}

static double of_all_pairs(double microseconds) {
    double mine = rank < size / 2 ? microseconds : 0, all;
    Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all / (size / 2);
}

static double windows(enum kind kind, int bytes, int iterations) {
    MPI_Request requests[2 * MAX_WINDOW];
    const size_t stride = multiple_buffers ? (size_t)bytes : 0;
    of_all_pairs(0); /* the pairs start together */
    const double start = MPI_Wtime();
    for (int i = 0; i < iterations; ++i) {
        int started = 0;
        for (int w = 0; receives && w < window; ++w)
            Irecv[kind](in + (size_t)w * stride, bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD,
                        &requests[started++]);
        for (int w = 0; sends && w < window; ++w)
            Isend[kind](out + (size_t)w * stride, bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD,
                        &requests[started++]);
        Waitall[kind](started, requests, MPI_STATUSES_IGNORE);
        if (rank < size / 2)
            Recv[kind](in, ANSWER, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else
            Send[kind](out, ANSWER, MPI_BYTE, peer, TAG, MPI_COMM_WORLD);
    }
    return of_all_pairs((MPI_Wtime() - start) / iterations * 1e6);
}

static void measure(const struct options* options, int bytes) {
    const size_t room = (size_t)window * (size_t)bytes + ANSWER;
    out = malloc(room), in = malloc(room);
    multiple_buffers = options->multiple_buffers;
    memset(out, 0x5A, room), memset(in, 0, room);
    for (enum kind kind = options->ordinary ? ORDINARY : PLAIN; kind < KINDS; ++kind) windows(kind, bytes, 2);
    int iterations = (int)(options->block_us / windows(ORDINARY, bytes, 3)); /* the same on every rank */
    interleave(options, windows, bytes, iterations < 2 ? 2 : iterations, rank == 0);
    memset(in, 0, room);
    multiple_buffers = 1;
    windows(ORDINARY, bytes, 1);
    if (memcmp(out, in, receives ? room - ANSWER : ANSWER) != 0) {
        fprintf(stderr, "mbw: %d bytes arrived changed\n", bytes);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    free(out), free(in);
}

int main(int argc, char** argv) {
    struct options options = {"1,16384,2097152", 11, 20000, 0, 0, 64, 0, 0};
    read_options(&options, "mbw", argc, argv);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    window = options.window;
    if (size % 2 != 0 || window < 1 || window > MAX_WINDOW) {
        fprintf(stderr, "mbw: needs an even number of ranks and a --window of 1 to %d\n", MAX_WINDOW);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    peer = rank < size / 2 ? rank + size / 2 : rank - size / 2;
    sends = options.both_ways || rank < size / 2;
    receives = options.both_ways || rank >= size / 2;
    if (!options.ordinary) look_up();
    char* sizes = strdup(options.sizes);
    for (char* item = strtok(sizes, ","); item; item = strtok(NULL, ",")) measure(&options, atoi(item));
    free(sizes);
    MPI_Finalize();
    return 0;
}
