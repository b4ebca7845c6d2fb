/* Round trips between two ranks, plain or ordinary (underneath.h), which start at rank 0. */
#ifndef MPISEC_BENCH_EXCHANGE_H
#define MPISEC_BENCH_EXCHANGE_H

#include "underneath.h"

#include <mpi.h>

enum { TAG = 77 };

static int (*Send[KINDS])(const void*, int, MPI_Datatype, int, int, MPI_Comm) = {NULL, MPI_Send};
static int (*Recv[KINDS])(void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status*) = {NULL, MPI_Recv};

/* Before the first plain one. */
static void find_plain_exchange(void) {
    *(void**)&Send[PLAIN] = underneath("PMPI_Send"), *(void**)&Recv[PLAIN] = underneath("PMPI_Recv");
}

/* `peer` is the other of the two. Returns microseconds one way, half a round trip. */
static double exchange_one_way(enum kind kind, int peer, const char* out, char* in, int bytes,
                               int iterations) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const double start = MPI_Wtime();
    for (int i = 0; i < iterations; ++i) {
        if (rank == 0) Send[kind](out, bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD);
        Recv[kind](in, bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank != 0) Send[kind](out, bytes, MPI_BYTE, peer, TAG, MPI_COMM_WORLD);
    }
    return (MPI_Wtime() - start) / iterations * 1e6 / 2;
}

#endif
