/* What MPIsec itself costs per message, the network excluded: a library under MPIsec (later in LD_PRELOAD)
 * that measures the time spent inside the real PMPI_Send and PMPI_Recv. The program takes what MPI_Send or
 * MPI_Recv took in all and subtracts this (bench/own_cost.c). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <time.h>

static double inside;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* Nanoseconds inside the real calls since the last call of this function. */
double mpisec_bench_inside(void) {
    double taken = inside;
    inside = 0;
    return taken;
}

int PMPI_Send(const void* buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm) {
    static int (*real)(const void*, int, MPI_Datatype, int, int, MPI_Comm);
    if (!real) *(void**)&real = dlsym(RTLD_NEXT, "PMPI_Send");
    double start = now();
    int code = real(buf, count, type, dest, tag, comm);
    inside += now() - start;
    return code;
}

int PMPI_Recv(void* buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
              MPI_Status* status) {
    static int (*real)(void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status*);
    if (!real) *(void**)&real = dlsym(RTLD_NEXT, "PMPI_Recv");
    double start = now();
    int code = real(buf, count, type, source, tag, comm, status);
    inside += now() - start;
    return code;
}
