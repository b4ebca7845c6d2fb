/* Ping-pong between the first rank and another, the last unless --peer says so: one-way microseconds of a
 * message, half a round trip (interleaving.h says how plain and sealed take turns).
 *
 * pingpong [--sizes 1,16,…] [--blocks N] [--block-us T] [--ordinary 1] [--peer RANK]
 * One line of JSON per size on rank 0. Ranks that have no part sleep. What arrived last is compared with what
 * was sent. */
#include "exchange.h"
#include "idle.h"
#include "interleaving.h"

static int rank, peer;
static char *out, *in;

static double one_way(enum kind kind, int bytes, int iterations) {
    return exchange_one_way(kind, peer, out, in, bytes, iterations);
}

/* How many exchanges fill a block; both ends do the same number. */
static int iterations_for(const struct options* options, int bytes) {
    int iterations = (int)(options->block_us / (2 * one_way(ORDINARY, bytes, 10)));
    if (iterations < 2) iterations = 2;
    if (rank == 0)
        MPI_Send(&iterations, 1, MPI_INT, peer, TAG, MPI_COMM_WORLD);
    else
        MPI_Recv(&iterations, 1, MPI_INT, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return iterations;
}

static void measure(const struct options* options, int bytes) {
    const size_t room = (size_t)bytes + 1;
    out = malloc(room), in = malloc(room);
    memset(out, 0x5A, room), memset(in, 0, room);
    for (enum kind kind = options->ordinary ? ORDINARY : PLAIN; kind < KINDS; ++kind) one_way(kind, bytes, 3);
    interleave(options, one_way, bytes, iterations_for(options, bytes), rank == 0);
    memset(in, 0, room);
    one_way(ORDINARY, bytes, 1);
    if (memcmp(out, in, (size_t)bytes) != 0) {
        fprintf(stderr, "pingpong: %d bytes arrived changed\n", bytes);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    free(out), free(in);
}

int main(int argc, char** argv) {
    struct options options = {"1,16,256,4096,16384,65536,262144,1048576,2097152,4194304", 11, 5000, 0, 0, 0};
    read_options(&options, "pingpong", argc, argv);
    int size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int other = options.peer > 0 ? options.peer : size - 1;
    peer = rank == 0 ? other : 0;
    if (size < 2 || other >= size) {
        fprintf(stderr, "pingpong: needs two ranks, --peer one of them\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (!options.ordinary) find_plain_exchange();
    char* sizes = strdup(options.sizes);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0 || rank == other) {
        for (char* item = strtok(sizes, ","); item; item = strtok(NULL, ",")) measure(&options, atoi(item));
        if (rank == 0) call_sleepers(size, other, TAG);
    } else {
        sleep_until_called(TAG);
    }
    free(sizes);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
