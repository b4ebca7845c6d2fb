/* What ranks do that have no part in a measurement between rank 0 and another. */
#ifndef MPISEC_BENCH_IDLE_H
#define MPISEC_BENCH_IDLE_H

#include <mpi.h>
#include <stddef.h>
#include <time.h>

/* A rank that has nothing to do must not take a core from those that are measured, as MPI_Recv would. */
static void sleep_until_called(int tag) {
    int called = 0;
    while (!called) {
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
        MPI_Iprobe(0, tag, MPI_COMM_WORLD, &called, MPI_STATUS_IGNORE);
    }
    MPI_Recv(NULL, 0, MPI_BYTE, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Rank 0 calls all of `size` ranks but itself and `other`. */
static void call_sleepers(int size, int other, int tag) {
    for (int rank = 1; rank < size; ++rank)
        if (rank != other) MPI_Send(NULL, 0, MPI_BYTE, rank, tag, MPI_COMM_WORLD);
}

#endif
