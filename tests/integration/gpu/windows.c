/* One-sided communication where the window's memory, the origin's, or both, are a GPU's. */
#include "../mpi/harness.h"
#include "device.h"

/* Memory of either side. */
static char* take(int on_device, size_t n) {
    return on_device ? device_memory(n) : memory(n + 1);
}
static void drop(int on_device, void* it) {
    on_device ? free_device(it) : free(it);
}
static void write_to(int on_device, void* to, const void* from, size_t n) {
    on_device ? to_device(to, from, n) : (void)memcpy(to, from, n);
}
static void read_from(int on_device, void* to, const void* from, size_t n) {
    on_device ? from_device(to, from, n) : (void)memcpy(to, from, n);
}
static void check(int on_device, const void* it, size_t n, unsigned long seed) {
    on_device ? CHECK_DEVICE(it, n, seed) : CHECK_FILLED(it, n, seed);
}
static char* filled(int on_device, size_t n, unsigned long seed) {
    char *it = take(on_device, n), *host = memory(n + 1);
    fill(host, n, seed);
    write_to(on_device, it, host, n);
    free(host);
    return it;
}

/* Every rank's slot in every rank's window. */
static void puts_and_gets(MPI_Win win, const char* base, int window, int origin, int n) {
    char **sent = memory((size_t)size * sizeof *sent), **got = memory((size_t)size * sizeof *got);
    MPI_Request* requests = memory((size_t)size * sizeof *requests);
    for (int peer = 0; peer < size; peer++) sent[peer] = filled(origin, n, seed_of(rank, peer, 1, n));
    for (int peer = 0; peer < size; peer++) got[peer] = filled(origin, n, 9);
    OK(MPI_Win_fence(0, win));
    for (int peer = 0; peer < size; peer++)
        OK(MPI_Put(sent[peer], n, MPI_BYTE, peer, (MPI_Aint)rank * n, n, MPI_BYTE, win));
    OK(MPI_Win_fence(0, win));
    for (int peer = 0; peer < size; peer++)
        check(window, base + (size_t)peer * n, n, seed_of(peer, rank, 1, n));
    OK(MPI_Win_fence(0, win));
    for (int peer = 0; peer < size; peer++)
        OK(MPI_Get(got[peer], n, MPI_BYTE, peer, (MPI_Aint)rank * n, n, MPI_BYTE, win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    for (int peer = 0; peer < size; peer++) check(origin, got[peer], n, seed_of(rank, peer, 1, n));
    for (int peer = 0; peer < size; peer++) drop(origin, sent[peer]), sent[peer] = filled(origin, n, 8);
    OK(MPI_Win_lock_all(0, win));
    for (int peer = 0; peer < size; peer++)
        OK(MPI_Rget(sent[peer], n, MPI_BYTE, peer, (MPI_Aint)rank * n, n, MPI_BYTE, win, &requests[peer]));
    OK(MPI_Waitall(size, requests, MPI_STATUSES_IGNORE));
    for (int peer = 0; peer < size; peer++) check(origin, sent[peer], n, seed_of(rank, peer, 1, n));
    for (int peer = 0; peer < size; peer++)
        OK(MPI_Rput(got[peer], n, MPI_BYTE, (peer + 1) % size, (MPI_Aint)rank * n, n, MPI_BYTE, win,
                    &requests[peer]));
    OK(MPI_Waitall(size, requests, MPI_STATUSES_IGNORE));
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int peer = 0; peer < size; peer++)
        check(window, base + (size_t)peer * n, n, seed_of(peer, (rank + size - 1) % size, 1, n));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int peer = 0; peer < size; peer++) drop(origin, sent[peer]), drop(origin, got[peer]);
    free(sent), free(got), free(requests);
}

/* To the next rank, in an epoch of these two. */
static void post_and_start(MPI_Win win, const char* base, int window, int origin, int n) {
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    MPI_Group all, to, from;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    OK(MPI_Group_incl(all, 1, &next, &to));
    OK(MPI_Group_incl(all, 1, &before, &from));
    char* sent = filled(origin, n, seed_of(rank, next, 3, n));
    OK(MPI_Win_post(from, 0, win));
    OK(MPI_Win_start(to, 0, win));
    OK(MPI_Put(sent, n, MPI_BYTE, next, 0, n, MPI_BYTE, win));
    OK(MPI_Win_complete(win));
    OK(MPI_Win_wait(win));
    check(window, base, n, seed_of(before, rank, 3, n));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Group_free(&all));
    OK(MPI_Group_free(&to));
    OK(MPI_Group_free(&from));
    drop(origin, sent);
}

/* All ranks add to the first `n` ints of rank 1; then each in turn fetches and adds. */
static void sums(MPI_Win win, char* base, int window, int origin, int n) {
    const size_t bytes = (size_t)n * sizeof(int);
    int* host = memory(bytes + 1);
    char *mine = take(origin, bytes), *before = take(origin, bytes);
    for (int i = 0; i < n; i++) host[i] = i;
    write_to(window, base, host, bytes);
    for (int i = 0; i < n; i++) host[i] = i + rank;
    write_to(origin, mine, host, bytes);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Accumulate(mine, n, MPI_INT, 1, 0, n, MPI_INT, MPI_SUM, win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    const int ranks_sum = size * (size - 1) / 2;
    read_from(window, host, base, bytes);
    for (int i = 0; i < n; i++)
        CHECK(host[i] == (rank == 1 ? (size + 1) * i + ranks_sum : i), "int %d is %d", i, host[i]);
    for (int turn = 0; turn < size; turn++) {
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (turn != rank) continue;
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win));
        OK(MPI_Get_accumulate(mine, n, MPI_INT, before, n, MPI_INT, 1, 0, n, MPI_INT, MPI_SUM, win));
        OK(MPI_Win_unlock(1, win));
        read_from(origin, host, before, bytes);
        for (int i = 0; i < n; i++)
            CHECK(host[i] == (size + 1 + rank) * i + ranks_sum + rank * (rank - 1) / 2, "int %d is %d", i,
                  host[i]);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    drop(origin, mine), drop(origin, before);
    free(host);
}

/* One counter, at rank 0: every value is fetched once; and one swap of many succeeds. */
static void atomics(MPI_Win win, char* base, int window, int origin) {
    enum { each = 5 };
    long host[3] = {1, -1, -7};
    char* mine = take(origin, sizeof host);
    long zero[2] = {0, -7};
    write_to(window, base, zero, sizeof zero);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(0, win));
    long last = -1, total = 0, most = 0;
    for (int i = 0; i < each; i++) {
        write_to(origin, mine, host, sizeof host);
        OK(MPI_Fetch_and_op(mine, mine + sizeof(long), MPI_LONG, 0, 0, MPI_SUM, win));
        OK(MPI_Win_flush(0, win));
        long fetched;
        read_from(origin, &fetched, mine + sizeof(long), sizeof fetched);
        CHECK(fetched > last && fetched < (long)each * size, "fetched %ld after %ld", fetched, last);
        last = fetched;
    }
    OK(MPI_Allreduce(&last, &most, 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD));
    CHECK(most == (long)each * size - 1, "the last is %ld", most);
    host[0] = rank;
    write_to(origin, mine, host, sizeof host);
    OK(MPI_Compare_and_swap(mine, mine + 2 * sizeof(long), mine + sizeof(long), MPI_LONG, 0,
                            (MPI_Aint)sizeof(long), win));
    OK(MPI_Win_flush(0, win));
    read_from(origin, host, mine, sizeof host);
    const long swapped = host[1] == -7;
    OK(MPI_Allreduce(&swapped, &total, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD));
    CHECK(total == 1, "%ld ranks have swapped", total);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    drop(origin, mine);
}

/* Every second int, at both sides; what lies between stays. */
static void with_gaps(MPI_Win win, char* base, int window, int origin, int n) {
    const size_t bytes = 2 * (size_t)n * sizeof(int);
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    int* host = memory(bytes);
    MPI_Datatype column;
    OK(MPI_Type_vector(n, 1, 2, MPI_INT, &column));
    OK(MPI_Type_commit(&column));
    char* mine = take(origin, bytes);
    for (int i = 0; i < 2 * n; i++) host[i] = -i;
    write_to(window, base, host, bytes);
    for (int i = 0; i < 2 * n; i++) host[i] = 1000 * rank + i;
    write_to(origin, mine, host, bytes);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(mine, 1, column, next, 0, 1, column, win));
    OK(MPI_Win_fence(0, win));
    read_from(window, host, base, bytes);
    for (int i = 0; i < 2 * n; i++)
        CHECK(host[i] == (i % 2 ? -i : 1000 * before + i), "int %d is %d", i, host[i]);
    OK(MPI_Win_fence(0, win));
    OK(MPI_Accumulate(mine, 1, column, next, 0, 1, column, MPI_SUM, win));
    OK(MPI_Win_fence(0, win));
    for (int i = 0; i < 2 * n; i++) host[i] = 7;
    write_to(origin, mine, host, bytes);
    OK(MPI_Get(mine, 1, column, next, 0, 1, column, win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    read_from(origin, host, mine, bytes);
    for (int i = 0; i < 2 * n; i++)
        CHECK(host[i] == (i % 2 ? 7 : 2 * (1000 * rank + i)), "int %d is %d", i, host[i]);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Type_free(&column));
    drop(origin, mine);
    free(host);
}

/* Memory of both sides attached to one window. */
static void attached(int n) {
    MPI_Win win;
    MPI_Aint mine[2], *all = memory((size_t)size * sizeof mine);
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    char *device = filled(1, n, 5), *host = filled(0, n, 5);
    char* sent = filled(1, n, seed_of(rank, next, 2, n));
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_attach(win, device, n));
    OK(MPI_Win_attach(win, host, n));
    OK(MPI_Get_address(device, &mine[0]));
    OK(MPI_Get_address(host, &mine[1]));
    OK(MPI_Allgather(mine, 2, MPI_AINT, all, 2, MPI_AINT, MPI_COMM_WORLD));
    OK(MPI_Win_fence(0, win));
    for (int i = 0; i < 2; i++) OK(MPI_Put(sent, n, MPI_BYTE, next, all[2 * next + i], n, MPI_BYTE, win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    check(1, device, n, seed_of(before, rank, 2, n));
    check(0, host, n, seed_of(before, rank, 2, n));
    OK(MPI_Win_detach(win, device));
    OK(MPI_Win_detach(win, host));
    OK(MPI_Win_free(&win));
    drop(1, device), drop(0, host), drop(1, sent);
    free(all);
}

void windows(void) {
    static const int lengths[] = {4, 1000, 40000, 200000, 3000000};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int how = 1; how < 4; how++) {
            const int window = how & 1, origin = how >> 1, n = lengths[i];
            const size_t bytes = (size_t)n * (size_t)size;
            char *base = take(window, bytes), *found = NULL;
            int flag = 0;
            MPI_Win win;
            OK(MPI_Win_create(base, (MPI_Aint)bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
            OK(MPI_Win_get_attr(win, MPI_WIN_BASE, &found, &flag));
            CHECK(flag && found == base, "the window begins elsewhere");
            puts_and_gets(win, base, window, origin, n);
            post_and_start(win, base, window, origin, n);
            sums(win, base, window, origin, n / 4);
            if (n >= 1000) atomics(win, base, window, origin);
            if (n < 100000) with_gaps(win, base, window, origin, n / 8);
            OK(MPI_Win_free(&win));
            drop(window, base);
        }
    attached(1000);
    attached(2000000);
    /* Memory that ranks of a node share. */
    char* base = NULL;
    MPI_Win win;
    OK(MPI_Win_allocate((MPI_Aint)size * 40000, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    puts_and_gets(win, base, 0, 1, 40000);
    sums(win, base, 0, 1, 10000);
    atomics(win, base, 0, 1);
    with_gaps(win, base, 0, 1, 1000);
    OK(MPI_Win_free(&win));
}
