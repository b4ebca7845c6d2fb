/* How a program that is attacked tells the adversary (adversary.c) when to act; without one nothing happens. */
#ifndef MPISEC_TESTS_ARMED_H
#define MPISEC_TESTS_ARMED_H

#include <dlfcn.h> /* RTLD_DEFAULT needs _GNU_SOURCE */
#include <mpi.h>

/* What this rank sends from now on is attacked. */
static inline void arm(void) {
    void (*call)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "adversary_arm");
    if (call) call();
}

/* Nothing more is; returns whether there is an adversary, and the frames and segments that were sent meanwhile. */
static inline int disarm(int* frames, int* segments) {
    void (*call)(int*, int*) = (void (*)(int*, int*))dlsym(RTLD_DEFAULT, "adversary_disarm");
    if (call) call(frames, segments);
    return call != 0;
}

/* Messages of this communicator are frames; others are segments. */
static inline void watch(MPI_Comm comm) {
    void (*call)(MPI_Comm) = (void (*)(MPI_Comm))dlsym(RTLD_DEFAULT, "adversary_watch");
    if (call) call(comm);
}

/* What goes to ranks of this one's node is not attacked: it never reaches the network. Called by all ranks. */
static inline void leave_node_alone(int rank) {
    MPI_Comm node;
    int ends[2] = {-rank, rank}, most[2] = {0, 0};
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Allreduce(ends, most, 2, MPI_INT, MPI_MAX, node);
    MPI_Comm_free(&node);
    void (*call)(int, int) = (void (*)(int, int))dlsym(RTLD_DEFAULT, "adversary_near");
    if (call) call(-most[0], most[1]);
}

#endif
