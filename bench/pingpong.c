/* Ping-pong and windowed bandwidth between the first and the last rank, plain and sealed in one run.
 *
 * Run under `mpisec exec`. The sealed calls are the program's ordinary MPI_ calls. The plain ones go straight
 * to the MPI library underneath (underneath.h). Blocks of both take turns, in an order that changes, so that
 * a machine that changes its speed changes both alike; each pair of blocks gives one ratio.
 *
 * pingpong [--sizes 1,16,…] [--rounds N] [--block-us T] [--window W] [--peer RANK]      one line of JSON per
 * size on rank 0:
 *   {"bytes": B, "window": W, "plain_us": median, "sealed_us": median, "ratio": median, "ratio_low": …,
 * "ratio_high": …, "rounds": N} times are one-way microseconds per message (window 0) or per window; low and
 * high bound the middle half of the ratios. */
#include "underneath.h"

#include <mpi.h>
#include <string.h>
#include <time.h>

enum { MAX_ROUNDS = 1001, MAX_WINDOW = 256, TAG = 77 };

struct procedures {
    int (*Send)(const void*, int, MPI_Datatype, int, int, MPI_Comm);
    int (*Recv)(void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status*);
    int (*Isend)(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
    int (*Irecv)(void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
    int (*Waitall)(int, MPI_Request*, MPI_Status*);
};

static int rank, size, last, peer; /* ranks 0 and last exchange, others wait */
static char *out, *in;

static struct procedures find_plain(void) {
    struct procedures plain;
    *(void**)&plain.Send = underneath("PMPI_Send");
    *(void**)&plain.Recv = underneath("PMPI_Recv");
    *(void**)&plain.Isend = underneath("PMPI_Isend");
    *(void**)&plain.Irecv = underneath("PMPI_Irecv");
    *(void**)&plain.Waitall = underneath("PMPI_Waitall");
    return plain;
}

static double exchange(const struct procedures* mpi, int bytes, int iterations, int window) {
    MPI_Request requests[MAX_WINDOW];
    double start = MPI_Wtime();
    for (int i = 0; i < iterations; ++i) {
        if (window == 0) {
            if (rank == 0) mpi->Send(out, bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD);
            mpi->Recv(in, bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (rank != 0) mpi->Send(out, bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD);
        } else if (rank == 0) {
            for (int w = 0; w < window; ++w)
                mpi->Isend(out + (size_t)w * (size_t)bytes, bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD,
                           &requests[w]);
            mpi->Waitall(window, requests, MPI_STATUSES_IGNORE);
            mpi->Recv(in, 4, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            for (int w = 0; w < window; ++w)
                mpi->Irecv(in + (size_t)w * (size_t)bytes, bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD,
                           &requests[w]);
            mpi->Waitall(window, requests, MPI_STATUSES_IGNORE);
            mpi->Send(out, 4, MPI_BYTE, peer, TAG, MPI_COMM_WORLD);
        }
    }
    return (MPI_Wtime() - start) / iterations * 1e6 / (window ? 1 : 2);
}

static void measure(const struct procedures* plain, const struct procedures* sealed, int bytes, int window,
                    int rounds, double block_us) {
    static double times[2][MAX_ROUNDS], ratios[MAX_ROUNDS];
    size_t copies = window ? (size_t)window : 1;
    out = malloc(copies * (size_t)bytes + 4), in = malloc(copies * (size_t)bytes + 4);
    memset(out, 0x5A, copies * (size_t)bytes + 4), memset(in, 0, copies * (size_t)bytes + 4);
    exchange(plain, bytes, 3, window), exchange(sealed, bytes, 3, window);
    int iterations = (int)(block_us / (2 * exchange(plain, bytes, 10, window)));
    if (iterations < 2) iterations = 2;
    if (rank == 0) /* both ends do the same number */
        sealed->Send(&iterations, 1, MPI_INT, peer, TAG, MPI_COMM_WORLD);
    else
        sealed->Recv(&iterations, 1, MPI_INT, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int round = 0; round < rounds; ++round) {
        int first = round & 1;
        for (int turn = 0; turn < 2; ++turn) {
            int which = first ^ turn;
            times[which][round] = exchange(which ? sealed : plain, bytes, iterations, window);
        }
        ratios[round] = times[1][round] / times[0][round];
    }
    if (memcmp(out, in, window && rank == 0 ? 4 : copies * (size_t)bytes) != 0) {
        fprintf(stderr, "pingpong: %d bytes arrived changed\n", bytes);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (rank == 0) {
        double low = quantile(ratios, rounds, 0.25), high = quantile(ratios, rounds, 0.75);
        printf(
            "{\"bytes\": %d, \"window\": %d, \"plain_us\": %.3f, \"sealed_us\": %.3f, \"ratio\": %.4f, "
            "\"ratio_low\": %.4f, "
            "\"ratio_high\": %.4f, \"rounds\": %d}\n",
            bytes, window, quantile(times[0], rounds, 0.5), quantile(times[1], rounds, 0.5),
            quantile(ratios, rounds, 0.5), low, high, rounds);
        fflush(stdout);
    }
    free(out), free(in);
}

/* A rank that has nothing to do must not take a core from those that are measured, as MPI_Recv would. */
static void sleep_until_called(void) {
    int called = 0;
    while (!called) {
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
        MPI_Iprobe(0, TAG, MPI_COMM_WORLD, &called, MPI_STATUS_IGNORE);
    }
    MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char** argv) {
    const char* sizes = "1,16,256,4096,16384,65536,262144,1048576,2097152,4194304";
    int rounds = 41, window = 0;
    double block_us = 5000;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--sizes") == 0)
            sizes = argv[i + 1];
        else if (strcmp(argv[i], "--rounds") == 0)
            rounds = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--block-us") == 0)
            block_us = atof(argv[i + 1]);
        else if (strcmp(argv[i], "--window") == 0)
            window = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--peer") == 0)
            last = atoi(argv[i + 1]);
        else {
            fprintf(stderr, "pingpong: unknown option %s\n", argv[i]);
            return 2;
        }
    }
    if (rounds < 1 || rounds > MAX_ROUNDS || window < 0 || window > MAX_WINDOW) {
        fprintf(stderr, "pingpong: --rounds is 1 to %d, --window 0 to %d\n", MAX_ROUNDS, MAX_WINDOW);
        return 2;
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (last <= 0) last = size - 1;
    peer = rank == 0 ? last : 0;
    if (size < 2 || last >= size) {
        fprintf(stderr, "pingpong: needs two ranks, --peer one of them\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    const struct procedures plain = find_plain(),
                            sealed = {MPI_Send, MPI_Recv, MPI_Isend, MPI_Irecv, MPI_Waitall};
    char* list = strdup(sizes);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0 || rank == last) {
        for (char* item = strtok(list, ","); item; item = strtok(NULL, ","))
            measure(&plain, &sealed, atoi(item), window, rounds, block_us);
        if (rank == 0)
            for (int other = 1; other < size; ++other)
                if (other != last) MPI_Send(NULL, 0, MPI_BYTE, other, TAG, MPI_COMM_WORLD);
    } else {
        sleep_until_called();
    }
    free(list);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
