/* One rank dies by SIGKILL: death RANK POINT. POINT: "large" (in a send of 64 MiB), "finalize", the name of a
 * collective, "stopped" (by SIGSTOP instead, in an allreduce), or "none" (the rank is killed by
 * dying_handshake.c in MPI_Init, and nobody comes this far). All ranks go on with what they do until the
 * launcher or MPIsec ends them. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { LARGE = 64 << 20, BLOCK = 20000 };
static int rank, size, neighbors[2];
static char *out, *in;
static int counts[64], places[64];

static void die(int signal) {
    (void)signal;
    kill(getpid(), SIGKILL);
}

static void die_in(int milliseconds) {
    struct itimerval timer = {{0, 0}, {milliseconds / 1000, milliseconds % 1000 * 1000}};
    signal(SIGALRM, die);
    setitimer(ITIMER_REAL, &timer, NULL);
}

static void large(MPI_Comm comm) {
    int peer = (rank + size / 2) % size; /* on another node */
    if (rank < size / 2)
        MPI_Send(out, LARGE, MPI_BYTE, peer, 1, comm);
    else
        MPI_Recv(in, LARGE, MPI_BYTE, peer, 1, comm, MPI_STATUS_IGNORE);
}

static void collective(const char* name, MPI_Comm comm, MPI_Comm ring) {
    if (!strcmp(name, "barrier")) MPI_Barrier(comm);
    if (!strcmp(name, "bcast")) MPI_Bcast(out, BLOCK, MPI_BYTE, 0, comm);
    if (!strcmp(name, "gather")) MPI_Gather(out, BLOCK, MPI_BYTE, in, BLOCK, MPI_BYTE, 0, comm);
    if (!strcmp(name, "scatter")) MPI_Scatter(out, BLOCK, MPI_BYTE, in, BLOCK, MPI_BYTE, 0, comm);
    if (!strcmp(name, "allgather")) MPI_Allgather(out, BLOCK, MPI_BYTE, in, BLOCK, MPI_BYTE, comm);
    if (!strcmp(name, "alltoall")) MPI_Alltoall(out, BLOCK, MPI_BYTE, in, BLOCK, MPI_BYTE, comm);
    if (!strcmp(name, "reduce")) MPI_Reduce(out, in, BLOCK, MPI_BYTE, MPI_BOR, 0, comm);
    if (!strcmp(name, "allreduce")) MPI_Allreduce(out, in, BLOCK, MPI_BYTE, MPI_BOR, comm);
    if (!strcmp(name, "reduce_scatter")) MPI_Reduce_scatter(out, in, counts, MPI_BYTE, MPI_BOR, comm);
    if (!strcmp(name, "scan")) MPI_Scan(out, in, BLOCK, MPI_BYTE, MPI_BOR, comm);
    if (!strcmp(name, "exscan")) MPI_Exscan(out, in, BLOCK, MPI_BYTE, MPI_BOR, comm);
    if (!strcmp(name, "neighbor_allgather"))
        MPI_Neighbor_allgather(out, BLOCK, MPI_BYTE, in, BLOCK, MPI_BYTE, ring);
    if (!strcmp(name, "neighbor_alltoall"))
        MPI_Neighbor_alltoall(out, BLOCK, MPI_BYTE, in, BLOCK, MPI_BYTE, ring);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int dies = rank == atoi(argv[1]);
    const char* point = argv[2];
    out = calloc(LARGE, 1), in = calloc(LARGE, 1);
    for (int i = 0; i < size; ++i) counts[i] = BLOCK, places[i] = i * BLOCK;
    int periodic = 1;
    MPI_Comm ring;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &ring);
    MPI_Barrier(MPI_COMM_WORLD);
    printf("rank %d starts\n", rank), fflush(stdout);
    if (!strcmp(point, "finalize")) {
        if (dies)
            die_in(100);
        else
            sleep(1);
        MPI_Finalize();
        return 0;
    }
    if (!strcmp(point, "first")) {
        MPI_Comm_dup(MPI_COMM_WORLD, &ring);
        if (dies) usleep(500000), die(0);
        for (;;) MPI_Allgather(out, BLOCK, MPI_BYTE, in, BLOCK, MPI_BYTE, ring);
    }
    if (!strcmp(point, "stopped")) {
        if (dies) raise(SIGSTOP);
        MPI_Allreduce(out, in, BLOCK, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
        return MPI_Finalize();
    }
    if (dies) die_in(300);
    for (;;) strcmp(point, "large") ? collective(point, MPI_COMM_WORLD, ring) : large(MPI_COMM_WORLD);
}
