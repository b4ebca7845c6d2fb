/* Prints what MPIsec itself takes for a message within a node, in nanoseconds: rank 0 sends to itself with MPI_Irecv, MPI_Send and
 * MPI_Wait, alternately through MPIsec and past it; the 10th percentile of 400 blocks. No other core has a part, so a busy
 * machine changes little. Run it on two nodes with one rank each, so that messages are verified; MPICH only. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BLOCKS = 400, MESSAGES = 200, MOST = 4096, TAG = 5 };
static char out[MOST], in[MOST];
static int (*send_by[2])(const void*, int, MPI_Datatype, int, int, MPI_Comm);
static int (*receive_by[2])(void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
static int (*wait_by[2])(MPI_Request*, MPI_Status*);

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_value(const void* a, const void* b) {
    const double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

static double block(int kind, int bytes) {
    const double start = now_ns();
    for (int i = 0; i < MESSAGES; ++i) {
        MPI_Request request;
        receive_by[kind](in, bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &request);
        send_by[kind](out, bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
        wait_by[kind](&request, MPI_STATUS_IGNORE);
    }
    return (now_ns() - start) / MESSAGES;
}

static void measure(int bytes) {
    static double times[2][BLOCKS];
    for (int i = 0; i < BLOCKS; ++i)
        for (int kind = 0; kind < 2; ++kind) times[kind][i] = block(kind, bytes);
    for (int kind = 0; kind < 2; ++kind) qsort(times[kind], BLOCKS, sizeof times[kind][0], by_value);
    const double plain = times[0][BLOCKS / 10], ours = times[1][BLOCKS / 10];
    printf("{\"bytes\": %d, \"plain_ns\": %.1f, \"mpisec_ns\": %.1f, \"own_ns\": %.1f}\n", bytes, plain, ours,
           ours - plain);
}

int main(int argc, char** argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    void* library = dlopen("libmpi.so.12", RTLD_NOLOAD | RTLD_LAZY);
    if (!library) MPI_Abort(MPI_COMM_WORLD, 1);
    *(void**)&send_by[0] = dlsym(library, "PMPI_Send");
    *(void**)&receive_by[0] = dlsym(library, "PMPI_Irecv");
    *(void**)&wait_by[0] = dlsym(library, "PMPI_Wait");
    send_by[1] = MPI_Send, receive_by[1] = MPI_Irecv, wait_by[1] = MPI_Wait;
    for (int bytes = 4; rank == 0 && bytes <= MOST; bytes *= bytes == 4 ? 10 : bytes == 40 ? 25 : 4)
        measure(bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
