/* M14: after MPI_Finalize nothing is left. A program that has used everything that leaves traces (small and
 * large messages, buffered ones that the program did not wait for, communicators that it did not free,
 * collectives in all forms and in shared memory of all sizes, many threads) lists what it still has:
 *
 *     left RANK KIND WHAT        KIND: thread (its name), file (an open descriptor's target), map (a mapped
 *                                file), shm (a name in /dev/shm)
 *
 * test_leftovers.py compares plain and sealed. */
#define _GNU_SOURCE
#include <dirent.h>
#include <unistd.h>

#include "harness.h"

static void use_collectives(unsigned char* out, unsigned char* in, int n) {
    MPI_Comm some[2]; /* not freed either */
    MPI_Request requests[6];
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &some[0]));
    OK(MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &some[1]));
    for (int i = 0; i < 2; ++i) {
        for (int bytes = 100; bytes <= n; bytes *= 30) {
            OK(MPI_Allgather(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, some[i]));
            OK(MPI_Bcast(out, bytes, MPI_BYTE, 0, some[i]));
            OK(MPI_Allreduce(out, in, bytes, MPI_BYTE, MPI_BOR, some[i]));
            OK(MPI_Alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, some[i]));
        }
        for (int k = 0; k < 6; ++k) OK(MPI_Ibarrier(some[i], &requests[k]));
        OK(MPI_Waitall(6, requests, MPI_STATUSES_IGNORE));
#if MPI_VERSION >= 4
        OK(MPI_Allgather_init(out, 1000, MPI_BYTE, in, 1000, MPI_BYTE, some[i], MPI_INFO_NULL, &requests[0]));
        OK(MPI_Start(&requests[0]));
        OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE)); /* and not freed */
#endif
    }
}

static void use_mpi(void) {
    enum { N = 3 << 20 };
    unsigned char *out = calloc(N, 1), *in = memory(N);
    int to = (rank + 1) % size, from = (rank + size - 1) % size, room = N + MPI_BSEND_OVERHEAD;
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm)); /* not freed */
    OK(MPI_Buffer_attach(memory((size_t)room), room));
    for (int i = 0; i < 5; ++i) {
        OK(MPI_Sendrecv(out, N, MPI_BYTE, to, 1, in, N, MPI_BYTE, from, 1, comm, MPI_STATUS_IGNORE));
        OK(MPI_Sendrecv(out, 10, MPI_BYTE, to, 1, in, 10, MPI_BYTE, from, 1, MPI_COMM_WORLD,
                        MPI_STATUS_IGNORE));
    }
    MPI_Request request; /* started and forgotten, its message received by the others before they finalize */
    OK(MPI_Isend(out, 100, MPI_BYTE, to, 2, comm, &request));
    OK(MPI_Request_free(&request));
    OK(MPI_Recv(in, 100, MPI_BYTE, from, 2, comm, MPI_STATUS_IGNORE));
    OK(MPI_Bsend(out, 100000, MPI_BYTE, to, 3, comm));
    OK(MPI_Recv(in, 100000, MPI_BYTE, from, 3, comm, MPI_STATUS_IGNORE));
    OK(MPI_Allreduce(&rank, in, 1, MPI_INT, MPI_MAX, comm));
    use_collectives(out, in, N / size);
    free(out), free(in);
}

static void list_threads(void) {
    DIR* tasks = opendir("/proc/self/task");
    for (struct dirent* entry; tasks && (entry = readdir(tasks));) {
        char path[512], name[64] = "";
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        FILE* file = fopen(path, "r");
        if (!file) continue;
        if (fgets(name, sizeof name, file)) printf("left %d thread %s", rank, name);
        fclose(file);
    }
    closedir(tasks);
}

static void list_files(void) {
    DIR* descriptors = opendir("/proc/self/fd");
    for (struct dirent* entry; descriptors && (entry = readdir(descriptors));) {
        char path[512], target[1024];
        snprintf(path, sizeof path, "/proc/self/fd/%s", entry->d_name);
        ssize_t n = readlink(path, target, sizeof target - 1);
        if (n > 0) target[n] = 0, printf("left %d file %s\n", rank, target);
    }
    closedir(descriptors);
}

static void list_maps(void) {
    FILE* maps = fopen("/proc/self/maps", "r");
    char line[2048], previous[1024] = "";
    while (maps && fgets(line, sizeof line, maps)) {
        char permissions[8], name[1024] = "";
        if (sscanf(line, "%*s %7s %*s %*s %*s %1023s", permissions, name) < 2 || permissions[3] != 's')
            continue;
        if (strcmp(name, previous) != 0) printf("left %d map %s\n", rank, name);
        snprintf(previous, sizeof previous, "%s", name);
    }
    if (maps) fclose(maps);
}

static int names_in_shared_memory(int listed) {
    DIR* names = opendir("/dev/shm");
    int count = 0;
    for (struct dirent* entry; names && (entry = readdir(names));) {
        if (entry->d_name[0] == '.') continue;
        ++count;
        if (listed) printf("left %d shm %s\n", rank, entry->d_name);
    }
    if (names) closedir(names);
    return count;
}

int main(int argc, char** argv) {
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &threads_given);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    use_mpi();
    MPI_Barrier(
        MPI_COMM_WORLD); /* and a moment: MPICH 4.0.2 may hang in MPI_Finalize otherwise (docs/lab.md) */
    sleep_seconds(0.02);
    MPI_Finalize();
    list_threads(), list_files(), list_maps();
    /* Until the other ranks of the node are through MPI_Finalize as well. */
    for (int looks = 0; looks < 250 && names_in_shared_memory(0) > 0; ++looks) sleep_seconds(0.02);
    names_in_shared_memory(1);
    printf("leftovers: rank %d done\n", rank);
    return 0;
}
