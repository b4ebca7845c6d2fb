/* growth DIRECTORY: what a rank and its node have used, into files of the directory, one for each rank: lines
 * "MOMENT MEMORY RECEIVED", with the rank's anonymous memory (bytes) and what the node's interfaces have received since the
 * rank began (bytes). The moments: after MPI_Init; after messages to the next rank and to the one half round,
 * and an MPI_Allreduce; with 64 duplicates of MPI_COMM_WORLD. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { DUPLICATES = 64 };

static FILE* out;
static long received_before;

static long anonymous_memory(void) {
    char line[256];
    long kib = 0;
    FILE* status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status)) sscanf(line, "RssAnon: %ld", &kib);
    if (status) fclose(status);
    return kib * 1024;
}

static long received(void) {
    char line[512], name[64];
    long sum = 0, bytes;
    FILE* devices = fopen("/proc/net/dev", "r");
    while (devices && fgets(line, sizeof line, devices))
        if (sscanf(line, " %63[^:]: %ld", name, &bytes) == 2 && strcmp(name, "lo") != 0) sum += bytes;
    if (devices) fclose(devices);
    return sum;
}

static void note(const char* moment) {
    fprintf(out, "%s %ld %ld\n", moment, anonymous_memory(), received() - received_before);
    fflush(out);
}

static void exchange(int rank, int size, int distance) {
    int got;
    MPI_Sendrecv(&rank, 1, MPI_INT, (rank + distance) % size, 0, &got, 1, MPI_INT,
                 (rank + size - distance) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char** argv) {
    int rank, size, sum;
    char path[512];
    received_before = received();
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    snprintf(path, sizeof path, "%s/%d", argv[1], rank);
    out = fopen(path, "w");
    if (!out) MPI_Abort(MPI_COMM_WORLD, 1);
    note("init");
    MPI_Barrier(MPI_COMM_WORLD);
    exchange(rank, size, 1);
    exchange(rank, size, size / 2);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    note("messages");
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm comm[DUPLICATES];
    for (int i = 0; i < DUPLICATES; i++) MPI_Comm_dup(MPI_COMM_WORLD, &comm[i]);
    MPI_Barrier(MPI_COMM_WORLD);
    note("duplicates");
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < DUPLICATES; i++) MPI_Comm_free(&comm[i]);
    MPI_Finalize();
    fclose(out);
    return sum == size * (size - 1) / 2 ? 0 : 1;
}
