/* Random traffic for a given time (tests/soak/soak.py): messages, collectives, windows, files and communicators, mixed. All ranks draw the same
 * plan from the same numbers, so each knows what every byte it gets must be. A wrong byte ends the job.
 *
 *     soak SECONDS SEED DIRECTORY     DIRECTORY: for files, which all ranks see
 *
 * The first rounds are the largest that any can be, so that caches have what the largest takes from the start, and memory that grows later is a
 * leak. Rank 0 prints "round N SECONDS" about once a second; every rank then adds "SECONDS RSS-KiB" to DIRECTORY/memory.RANK. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { longest = 1 << 20, messages = 24, kinds = 7, largest_rounds = 20 * kinds };

static int rank, size;
static uint64_t state;
static unsigned char *sending, *receiving;
static const char* directory;
static long number_of_round;

static uint64_t mix(uint64_t x) {
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

/* Equal on all ranks that have called it equally often. */
static uint64_t draw(uint64_t below) {
    state = mix(state);
    return (state >> 11) % below;
}

static int is_largest(void) {
    return number_of_round < largest_rounds;
}

/* Small ones often, large ones now and then. */
static int draw_bytes(void) {
    if (is_largest()) return longest;
    return (int)draw((uint64_t)1 << (4 + draw(17)));
}

static void fill(unsigned char* bytes, int n, uint64_t key) {
    uint64_t word = mix(key);
    for (int i = 0; i < n; ++i) {
        if (i % 8 == 0) word = mix(key ^ (uint64_t)i);
        bytes[i] = (unsigned char)(word >> (i % 8 * 8));
    }
}

static void must(int good, const char* what) {
    if (good) return;
    fprintf(stderr, "SOAK WRONG: rank %d: %s\n", rank, what);
    fflush(stderr);
    usleep(300000); /* launchers drop what a rank wrote just before the job is killed */
    MPI_Abort(MPI_COMM_WORLD, 3);
}

static void check(const unsigned char* bytes, int n, uint64_t key, const char* what) {
    uint64_t word = mix(key);
    for (int i = 0; i < n; ++i) {
        if (i % 8 == 0) word = mix(key ^ (uint64_t)i);
        must(bytes[i] == (unsigned char)(word >> (i % 8 * 8)), what);
    }
}

static void point_to_point(void) {
    MPI_Request requests[2 * messages];
    int count = 0, used_to = 0, used_from = 0, got[messages], at[messages], bytes[messages];
    uint64_t keys[messages];
    const int number = is_largest() ? messages : 1 + (int)draw(messages);
    for (int i = 0; i < number; ++i) {
        const int from = (int)draw((uint64_t)size), mode = (int)draw(3);
        const int to = (int)(is_largest() ? number_of_round / kinds % size : (long)draw((uint64_t)size));
        bytes[i] = draw_bytes();
        keys[i] = draw(UINT64_MAX);
        got[i] = to == rank;
        if (to == rank) {
            at[i] = used_from;
            MPI_Irecv(receiving + used_from, bytes[i], MPI_BYTE, from, i, MPI_COMM_WORLD, &requests[count++]);
            used_from += bytes[i];
        }
        if (from != rank) continue;
        fill(sending + used_to, bytes[i], keys[i]);
        int (*start)(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*) =
            mode == 0 ? MPI_Issend : MPI_Isend;
        start(sending + used_to, bytes[i], MPI_BYTE, to, i, MPI_COMM_WORLD, &requests[count++]);
        used_to += bytes[i];
    }
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < number; ++i)
        if (got[i]) check(receiving + at[i], bytes[i], keys[i], "a message");
}

/* Everybody to rank `to`, which probes for whatever comes: not for what a fast rank sends in a later round. */
static void any_source(void) {
    const int to = (int)draw((uint64_t)size), bytes = draw_bytes();
    const int tag = 100 + (int)(number_of_round % 1000);
    const uint64_t key = draw(UINT64_MAX);
    if (rank != to) {
        fill(sending, bytes, key + (uint64_t)rank);
        MPI_Send(sending, bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD);
        return;
    }
    for (int i = 1; i < size; ++i) {
        MPI_Message message;
        MPI_Status status;
        int there;
        MPI_Mprobe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &message, &status);
        MPI_Get_count(&status, MPI_BYTE, &there);
        must(there == bytes, "length of a probed message");
        MPI_Mrecv(receiving, there, MPI_BYTE, &message, &status);
        check(receiving, bytes, key + (uint64_t)status.MPI_SOURCE, "a probed message");
    }
}

static void collectives(MPI_Comm comm) {
    int me, all;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &all);
    const int root = (int)draw((uint64_t)all), bytes = draw_bytes() / 16 + 1;
    const uint64_t key = draw(UINT64_MAX);
    if (me == root) fill(sending, bytes, key);
    MPI_Bcast(sending, bytes, MPI_BYTE, root, comm);
    check(sending, bytes, key, "bcast");

    fill(sending, bytes, key + (uint64_t)me);
    MPI_Allgather(sending, bytes, MPI_BYTE, receiving, bytes, MPI_BYTE, comm);
    for (int i = 0; i < all; ++i)
        check(receiving + (size_t)i * (size_t)bytes, bytes, key + (uint64_t)i, "allgather");

    for (int i = 0; i < all; ++i)
        fill(sending + (size_t)i * (size_t)bytes, bytes, key + (uint64_t)(me * all + i));
    MPI_Request request;
    MPI_Ialltoall(sending, bytes, MPI_BYTE, receiving, bytes, MPI_BYTE, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < all; ++i)
        check(receiving + (size_t)i * (size_t)bytes, bytes, key + (uint64_t)(i * all + me), "alltoall");

    uint64_t mine[64], sums[64], before[64];
    for (int i = 0; i < 64; ++i) mine[i] = mix(key + (uint64_t)i) + (uint64_t)me;
    MPI_Allreduce(mine, sums, 64, MPI_UINT64_T, MPI_SUM, comm);
    MPI_Scan(mine, before, 64, MPI_UINT64_T, MPI_SUM, comm);
    for (int i = 0; i < 64; ++i) {
        const uint64_t of_one = mix(key + (uint64_t)i), m = (uint64_t)me, p = (uint64_t)all;
        must(sums[i] == p * of_one + p * (p - 1) / 2, "allreduce");
        must(before[i] == (m + 1) * of_one + m * (m + 1) / 2, "scan");
    }
    MPI_Barrier(comm);
}

static void communicators(void) {
    MPI_Comm part, copy;
    const int parts = 1 + (int)draw(3);
    MPI_Comm_split(MPI_COMM_WORLD, rank % parts, -rank, &part);
    MPI_Comm_dup(part, &copy);
    const uint64_t same = state; /* parts differ in size, and draw differently */
    collectives(copy);
    state = same;
    MPI_Comm_free(&copy);
    MPI_Comm_free(&part);
}

static void windows(void) {
    const int bytes = draw_bytes() / 8 + 8, right = (rank + 1) % size, left = (rank + size - 1) % size;
    const uint64_t key = draw(UINT64_MAX);
    MPI_Win win;
    unsigned char* memory;
    MPI_Win_allocate(2 * bytes + 16, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    memset(memory, 0, (size_t)(2 * bytes + 16));
    MPI_Win_fence(0, win);
    fill(sending, bytes, key + (uint64_t)rank);
    MPI_Put(sending, bytes, MPI_BYTE, right, 16, bytes, MPI_BYTE, win);
    MPI_Win_fence(0, win);
    check(memory + 16, bytes, key + (uint64_t)left, "put");
    MPI_Get(receiving, bytes, MPI_BYTE, right, 16, bytes, MPI_BYTE, win);
    MPI_Win_fence(0, win);
    check(receiving, bytes, key + (uint64_t)rank, "get");
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    int64_t one = 1, seen;
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    MPI_Fetch_and_op(&one, &seen, MPI_INT64_T, 0, 0, MPI_SUM, win);
    MPI_Win_unlock(0, win);
    must(seen >= 0 && seen < size, "fetch and add");
    MPI_Barrier(MPI_COMM_WORLD);
    int64_t now = 0;
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    MPI_Get(&now, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win);
    MPI_Win_unlock(0, win);
    must(now == size, "sum of fetch and add");
    MPI_Win_free(&win);
}

static void files(void) {
    const int bytes = draw_bytes() / 8 + 1;
    const uint64_t key = draw(UINT64_MAX);
    char name[4096];
    MPI_File file;
    snprintf(name, sizeof name, "%s/data", directory);
    MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                  MPI_INFO_NULL, &file);
    fill(sending, bytes, key + (uint64_t)rank);
    MPI_File_write_at_all(file, (MPI_Offset)rank * bytes, sending, bytes, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    const int other = (rank + 1) % size;
    MPI_File_read_at_all(file, (MPI_Offset)other * bytes, receiving, bytes, MPI_BYTE, MPI_STATUS_IGNORE);
    check(receiving, bytes, key + (uint64_t)other, "a file");
    MPI_File_close(&file);
}

static void persistent(void) {
    const int bytes = draw_bytes(), right = (rank + 1) % size, left = (rank + size - 1) % size;
    const uint64_t key = draw(UINT64_MAX);
    MPI_Request requests[2];
    MPI_Recv_init(receiving, bytes, MPI_BYTE, left, 9, MPI_COMM_WORLD, &requests[0]);
    MPI_Send_init(sending, bytes, MPI_BYTE, right, 9, MPI_COMM_WORLD, &requests[1]);
    for (uint64_t i = 0; i < 3; ++i) {
        fill(sending, bytes, key + i * 1000 + (uint64_t)rank);
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        check(receiving, bytes, key + i * 1000 + (uint64_t)left, "a persistent message");
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}

static void note_memory(double seconds) {
    char name[4096];
    long pages = 0, resident = 0;
    FILE* from = fopen("/proc/self/statm", "r");
    must(from && fscanf(from, "%ld %ld", &pages, &resident) == 2, "/proc/self/statm");
    fclose(from);
    snprintf(name, sizeof name, "%s/memory.%d", directory, rank);
    FILE* to = fopen(name, "a");
    must(to != NULL, "the file for memory");
    fprintf(to, "%.1f %ld\n", seconds, resident * (sysconf(_SC_PAGESIZE) / 1024));
    fclose(to);
}

static void one_round(void) {
    switch (is_largest() ? (uint64_t)(number_of_round % kinds) : draw(kinds)) {
        case 0:
            return point_to_point();
        case 1:
            return any_source();
        case 2:
            return collectives(MPI_COMM_WORLD);
        case 3:
            return communicators();
        case 4:
            return windows();
        case 5:
            return files();
        default:
            return persistent();
    }
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    must(argc == 4, "usage: soak SECONDS SEED DIRECTORY");
    const double limit = atof(argv[1]), start = MPI_Wtime();
    state = strtoull(argv[2], NULL, 10);
    directory = argv[3];
    const size_t room = (size_t)longest * messages + (size_t)size * longest;
    sending = malloc(room);
    receiving = malloc(room);
    must(sending && receiving, "memory");
    memset(sending, 1, room); /* resident from the start, so that only what grows later is seen */
    memset(receiving, 1, room);
    double said = -2, clock[2] = {0, 0};
    for (; clock[0] < limit; ++number_of_round) {
        one_round();
        clock[0] = MPI_Wtime() - start;
        MPI_Bcast(clock, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        if (clock[0] - said < 1) continue;
        said = clock[0];
        note_memory(said);
        if (rank == 0) printf("round %ld %.1f\n", number_of_round, said);
        fflush(stdout);
    }
    if (rank == 0) printf("soak ended\n");
    return MPI_Finalize();
}
