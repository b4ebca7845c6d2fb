/* One partitioned message after the other between two ranks: rank 0 makes one partition ready after the other,
 * rank 1 answers each message with four bytes. Times are microseconds per message (interleaving.h says how what is
 * compared takes turns): sealed partitions beside
 *
 *   --against 0   the MPI library's own partitioned procedures, plain
 *   --against 1   as many MPI_Isend and MPI_Irecv, plain
 *   --against 2   as many MPI_Isend and MPI_Irecv, sealed
 *
 * partitioned [--sizes 65536] [--window 16] [--against 0] [--blocks N] [--block-us T] [--ordinary 1]
 * --sizes: of a partition; --window: partitions. One line of JSON per size on rank 0. A last message is compared
 * with what was sent. */
#include "interleaving.h"

#include <mpi.h>

enum { TAG = 78, MAX_PARTITIONS = 1024, ANSWER = 4 };

static int (*Send)(const void*, int, MPI_Datatype, int, int, MPI_Comm) = MPI_Send;
static int (*Recv)(void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status*) = MPI_Recv;
static int (*Isend[KINDS])(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*) = {NULL,
                                                                                                MPI_Isend};
static int (*Irecv[KINDS])(void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*) = {NULL, MPI_Irecv};
static int (*Waitall[KINDS])(int, MPI_Request*, MPI_Status*) = {NULL, MPI_Waitall};
static int (*Psend_init[KINDS])(const void*, int, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Info,
                                MPI_Request*) = {NULL, MPI_Psend_init};
static int (*Precv_init[KINDS])(void*, int, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Info,
                                MPI_Request*) = {NULL, MPI_Precv_init};
static int (*Pready[KINDS])(int, MPI_Request) = {NULL, MPI_Pready};
static int (*Start[KINDS])(MPI_Request*) = {NULL, MPI_Start};
static int (*Free[KINDS])(MPI_Request*) = {NULL, MPI_Request_free};
static int (*Allreduce)(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm) = MPI_Allreduce;

static int rank, peer, partitions, against;
static char *out, *in;
static MPI_Request partitioned[KINDS];

static void look_up(void) {
    *(void**)&Psend_init[PLAIN] = underneath("PMPI_Psend_init");
    *(void**)&Precv_init[PLAIN] = underneath("PMPI_Precv_init");
    *(void**)&Pready[PLAIN] = underneath("PMPI_Pready");
    *(void**)&Start[PLAIN] = underneath("PMPI_Start");
    *(void**)&Free[PLAIN] = underneath("PMPI_Request_free");
    *(void**)&Isend[PLAIN] = against == 2 ? (void*)MPI_Isend : underneath("PMPI_Isend");
    *(void**)&Irecv[PLAIN] = against == 2 ? (void*)MPI_Irecv : underneath("PMPI_Irecv");
    *(void**)&Waitall[PLAIN] = against == 2 ? (void*)MPI_Waitall : underneath("PMPI_Waitall");
    *(void**)&Send = underneath("PMPI_Send");
    *(void**)&Recv = underneath("PMPI_Recv");
    *(void**)&Allreduce = underneath("PMPI_Allreduce");
}

/* By one request for the whole message, or by one for each of its parts. */
static void message(enum kind kind, int bytes) {
    MPI_Request requests[MAX_PARTITIONS];
    if (kind == ORDINARY || against == 0) {
        Start[kind](&partitioned[kind]);
        for (int i = 0; i < partitions && rank == 0; ++i) Pready[kind](i, partitioned[kind]);
        Waitall[kind](1, &partitioned[kind], MPI_STATUSES_IGNORE);
        return;
    }
    for (int i = 0; i < partitions; ++i) {
        const size_t at = (size_t)i * (size_t)bytes;
        if (rank == 0)
            Isend[kind](out + at, bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &requests[i]);
        else
            Irecv[kind](in + at, bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &requests[i]);
    }
    Waitall[kind](partitions, requests, MPI_STATUSES_IGNORE);
}

static double messages(enum kind kind, int bytes, int iterations) {
    double mine, all;
    Allreduce(&(double){0}, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* both start together */
    const double start = MPI_Wtime();
    for (int i = 0; i < iterations; ++i) {
        message(kind, bytes);
        /* plain, whatever is compared */
        if (rank == 0)
            Recv(in, ANSWER, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else
            Send(out, ANSWER, MPI_BYTE, peer, TAG, MPI_COMM_WORLD);
    }
    mine = rank == 0 ? (MPI_Wtime() - start) / iterations * 1e6 : 0;
    Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

static void measure(const struct options* options, int bytes) {
    const size_t room = (size_t)partitions * (size_t)bytes + ANSWER;
    const enum kind first = options->ordinary || against != 0 ? ORDINARY : PLAIN;
    out = malloc(room), in = malloc(room);
    memset(out, 0x5A, room), memset(in, 0, room);
    for (enum kind kind = first; kind < KINDS; ++kind)
        if (rank == 0)
            Psend_init[kind](out, partitions, bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, MPI_INFO_NULL,
                             &partitioned[kind]);
        else
            Precv_init[kind](in, partitions, bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, MPI_INFO_NULL,
                             &partitioned[kind]);
    for (enum kind kind = options->ordinary ? ORDINARY : PLAIN; kind < KINDS; ++kind)
        messages(kind, bytes, 2);
    int iterations = (int)(options->block_us / messages(ORDINARY, bytes, 3)); /* the same on every rank */
    interleave(options, messages, bytes, iterations < 2 ? 2 : iterations, rank == 0);
    memset(in, 0, room);
    messages(ORDINARY, bytes, 1);
    if (memcmp(out, in, rank == 0 ? 0 : room - ANSWER) != 0) {
        fprintf(stderr, "partitioned: %d bytes arrived changed\n", bytes);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (enum kind kind = first; kind < KINDS; ++kind) Free[kind](&partitioned[kind]);
    free(out), free(in);
}

int main(int argc, char** argv) {
    struct options options = {"65536", 11, 20000, 0, 0, 16, 0, 0};
    int size = 0;
    read_options(&options, "partitioned", argc, argv);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    partitions = options.window, against = options.against;
    if (size != 2 || partitions < 1 || partitions > MAX_PARTITIONS || against < 0 || against > 2) {
        fprintf(stderr, "partitioned: needs two ranks, a --window of 1 to %d and an --against of 0 to 2\n",
                MAX_PARTITIONS);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    peer = 1 - rank;
    if (!options.ordinary) look_up();
    char* sizes = strdup(options.sizes);
    for (char* item = strtok(sizes, ","); item; item = strtok(NULL, ",")) measure(&options, atoi(item));
    free(sizes);
    MPI_Finalize();
    return 0;
}
