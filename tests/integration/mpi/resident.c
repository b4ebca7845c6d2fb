/* Prints the resident memory of the rank that has most, in KiB: after MPI_Init, and after messages and
 * collectives. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static void report(const char* when) {
    char line[256];
    long mine = 0, most = 0;
    FILE* status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status)) sscanf(line, "VmRSS: %ld", &mine);
    if (status) fclose(status);
    MPI_Reduce(&mine, &most, 1, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) printf("%s %ld\n", when, most);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    report("start");
    int rank, size, from_left = 0, sum = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < 100; i++) {
        MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 0, &from_left, 1, MPI_INT,
                     (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
    report("messages");
    MPI_Finalize();
    return 0;
}
