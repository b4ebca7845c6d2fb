/* MPI calls on a GPU's memory: every message arrives, of that memory nothing is touched but by the driver, and what
 * is not done is refused with an error. Arguments: the driver's file, and when it is loaded: early, late. */
#include <dlfcn.h>

#include "../mpi/harness.h"
#include "device.h"

/* From 1 MiB on in pieces, of which the first three have 256 KiB, 512 KiB and 1 MiB. */
static const int lengths[] = {1, 1000, 70000, 1 << 20, (7 << 18) - 1, 7 << 18, (7 << 18) + 1, 9000000};
enum { length_count = sizeof lengths / sizeof *lengths, tag = 5, tag_of_rank_0 = 6 };

static unsigned long seed_for(int from, int to, int n) {
    return seed_of(from, to, tag, n);
}

/* Rank 0 sends to each, from a GPU's memory to a GPU's, to the host's and from the host's. */
static void send_and_receive(int n, int how) {
    const int from_host = how == 1, to_host = how == 2;
    for (int peer = 1; peer < size; peer++) {
        const unsigned long seed = seed_for(0, peer, n);
        if (rank == 0) {
            char* device = from_host ? memory(n) : device_filled(n, seed);
            if (from_host) fill(device, n, seed);
            OK(MPI_Send(device, n, MPI_BYTE, peer, tag_of_rank_0, MPI_COMM_WORLD));
            OK(MPI_Ssend(device, n, MPI_BYTE, peer, tag_of_rank_0, MPI_COMM_WORLD));
            from_host ? free(device) : free_device(device);
        } else if (rank == peer) {
            MPI_Status status;
            char* device = to_host ? memory(n + 8) : device_filled(n + 8, 1);
            OK(MPI_Recv(device, n + 8, MPI_BYTE, 0, tag_of_rank_0, MPI_COMM_WORLD, &status));
            CHECK_STATUS(&status, 0, tag_of_rank_0, n);
            OK(MPI_Recv(device, n + 8, MPI_BYTE, MPI_ANY_SOURCE, tag_of_rank_0, MPI_COMM_WORLD, &status));
            CHECK_STATUS(&status, 0, tag_of_rank_0, n);
            if (to_host) {
                CHECK_FILLED(device, n, seed);
                free(device);
            } else {
                CHECK_DEVICE(device, n, seed);
                free_device(device);
            }
        }
    }
}

static void every_pair(int n) {
    MPI_Request* requests = memory(2 * size * sizeof *requests);
    char **sent = memory(size * sizeof *sent), **got = memory(size * sizeof *got);
    for (int peer = 0; peer < size; peer++) {
        got[peer] = device_filled(n, 3);
        OK(MPI_Irecv(got[peer], n, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &requests[peer]));
    }
    for (int peer = 0; peer < size; peer++) {
        sent[peer] = device_filled(n, seed_for(rank, peer, n));
        int (*send)(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*) =
            peer % 2 ? MPI_Isend : MPI_Issend;
        OK(send(sent[peer], n, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &requests[size + peer]));
    }
    OK(MPI_Waitall(2 * size, requests, MPI_STATUSES_IGNORE));
    for (int peer = 0; peer < size; peer++) {
        CHECK_DEVICE(got[peer], n, seed_for(peer, rank, n));
        free_device(got[peer]);
        free_device(sent[peer]);
    }
    free(requests), free(sent), free(got);
}

static void exchanges(int n) {
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    MPI_Status status;
    MPI_Request both;
    char *sent = device_filled(n, seed_for(rank, next, n)), *got = device_filled(n, 3);
    OK(MPI_Sendrecv(sent, n, MPI_BYTE, next, tag, got, n, MPI_BYTE, before, tag, MPI_COMM_WORLD, &status));
    CHECK_STATUS(&status, before, tag, n);
    CHECK_DEVICE(got, n, seed_for(before, rank, n));
    OK(MPI_Sendrecv_replace(sent, n, MPI_BYTE, next, tag, before, tag, MPI_COMM_WORLD, &status));
    CHECK_DEVICE(sent, n, seed_for(before, rank, n));
    (void)both;
#if HAVE_ISENDRECV
    char* again = device_filled(n, seed_for(rank, next, n));
    OK(MPI_Isendrecv(again, n, MPI_BYTE, next, tag, got, n, MPI_BYTE, before, tag, MPI_COMM_WORLD, &both));
    OK(MPI_Wait(&both, MPI_STATUS_IGNORE));
    CHECK_DEVICE(got, n, seed_for(before, rank, n));
    OK(MPI_Isendrecv_replace(again, n, MPI_BYTE, next, tag, before, tag, MPI_COMM_WORLD, &both));
    OK(MPI_Wait(&both, MPI_STATUS_IGNORE));
    CHECK_DEVICE(again, n, seed_for(before, rank, n));
    free_device(again);
#endif
    free_device(sent), free_device(got);
}

static void persistent(int n) {
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    char *sent = device_memory(n), *got = device_memory(n), *host = memory(n);
    MPI_Request requests[2];
    OK(MPI_Send_init(sent, n, MPI_BYTE, next, tag, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Recv_init(got, n, MPI_BYTE, before, tag, MPI_COMM_WORLD, &requests[1]));
    for (int start = 0; start < 2; start++) {
        fill(host, n, seed_for(rank, next, n) + start);
        to_device(sent, host, n);
        OK(MPI_Startall(2, requests));
        OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        CHECK_DEVICE(got, n, seed_for(before, rank, n) + start);
    }
    OK(MPI_Request_free(&requests[0]));
    OK(MPI_Request_free(&requests[1]));
    free(host), free_device(sent), free_device(got);
}

static void buffered_and_probed(int n) {
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    char* sent = device_filled(n, seed_for(rank, next, n));
    const int room = 2 * (n + MPI_BSEND_OVERHEAD) + 1000;
    void* buffer = memory(room);
    int detached;
    MPI_Request request;
    MPI_Message message;
    MPI_Status status;
    OK(MPI_Buffer_attach(buffer, room));
    OK(MPI_Bsend(sent, n, MPI_BYTE, next, tag, MPI_COMM_WORLD));
    OK(MPI_Ibsend(sent, n, MPI_BYTE, next, tag, MPI_COMM_WORLD, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    for (int i = 0; i < 2; i++) {
        char* got = device_filled(n, 3);
        OK(MPI_Mprobe(before, tag, MPI_COMM_WORLD, &message, &status));
        CHECK_STATUS(&status, before, tag, n);
        if (i == 0) {
            OK(MPI_Mrecv(got, n, MPI_BYTE, &message, &status));
            CHECK_STATUS(&status, before, tag, n);
        } else {
            OK(MPI_Imrecv(got, n, MPI_BYTE, &message, &request));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        }
        CHECK_DEVICE(got, n, seed_for(before, rank, n));
        free_device(got);
    }
    OK(MPI_Buffer_detach(&buffer, &detached));
    free(buffer), free_device(sent);
}

/* Every second int of a column; what lies between stays as it was. */
static void gaps(void) {
    enum { rows = 500 };
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    int host[2 * rows], *sent = (int*)device_memory(sizeof host), *got = (int*)device_memory(sizeof host);
    MPI_Datatype column, there;
    MPI_Aint place = (MPI_Aint)(size_t)got;
    int one = 1;
    OK(MPI_Type_vector(rows, 1, 2, MPI_INT, &column));
    OK(MPI_Type_commit(&column));
    OK(MPI_Type_create_hindexed(1, &one, &place, column, &there));
    OK(MPI_Type_commit(&there));
    for (int i = 0; i < 2 * rows; i++) host[i] = i + 10000 * rank;
    to_device(sent, host, sizeof host);
    for (int bottom = 0; bottom < 2; bottom++) {
        for (int i = 0; i < 2 * rows; i++) host[i] = -1;
        to_device(got, host, sizeof host);
        MPI_Request request;
        OK(MPI_Irecv(bottom ? MPI_BOTTOM : got, 1, bottom ? there : column, before, tag, MPI_COMM_WORLD,
                     &request));
        OK(MPI_Send(sent, 1, column, next, tag, MPI_COMM_WORLD));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        from_device(host, got, sizeof host);
        for (int i = 0; i < 2 * rows; i++)
            CHECK(host[i] == (i % 2 ? -1 : i + 10000 * before), "int %d is %d", i, host[i]);
    }
    OK(MPI_Type_free(&column));
    OK(MPI_Type_free(&there));
    free_device(sent), free_device(got);
}

static void truncation(int n) {
    if (rank == 0) {
        char* sent = device_filled(2 * n, 8);
        OK(MPI_Send(sent, 2 * n, MPI_BYTE, size - 1, tag, MPI_COMM_WORLD));
        free_device(sent);
    } else if (rank == size - 1) {
        char* got = device_filled(n, 9);
        MPI_Status status;
        const int code = MPI_Recv(got, n, MPI_BYTE, 0, tag, MPI_COMM_WORLD, &status);
        CHECK(class_of(code) == MPI_ERR_TRUNCATE, "error class %d", class_of(code));
        CHECK_DEVICE(got, n, 9);
        free_device(got);
    }
}

static void managed(void) {
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    char *sent = managed_memory(100), *got = managed_memory(100);
    fill(sent, 100, rank);
    OK(MPI_Sendrecv(sent, 100, MPI_BYTE, next, tag, got, 100, MPI_BYTE, before, tag, MPI_COMM_WORLD,
                    MPI_STATUS_IGNORE));
    CHECK_FILLED(got, 100, before);
    free_device(sent), free_device(got);
}

/* Whatever the driver's memory is, a call on it that is not done ends in an error that says so. */
static void check_refused(int code, const char* call) {
    char text[MPI_MAX_ERROR_STRING];
    int length;
    CHECK(code != MPI_SUCCESS, "%s was done", call);
    MPI_Error_string(code, text, &length);
    CHECK(strstr(text, call) && strstr(text, "memory of a GPU"), "%s: %s", call, text);
}

static void refusals(void) {
    MPI_Win win;
    MPI_Comm node;
    MPI_Request request;
    char *device = device_filled(100, 4), *base;
    const int next = (rank + 1) % size;
    OK(MPI_Win_allocate(100, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    OK(MPI_Win_lock_all(0, win));
    check_refused(MPI_Put(device, 100, MPI_BYTE, next, 0, 100, MPI_BYTE, win), "MPI_Put");
    check_refused(MPI_Get(device, 100, MPI_BYTE, next, 0, 100, MPI_BYTE, win), "MPI_Get");
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));
    check_refused(MPI_Win_create(device, 100, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win), "MPI_Win_create");
    check_refused(MPI_Bsend_init(device, 100, MPI_BYTE, next, tag, MPI_COMM_WORLD, &request),
                  "MPI_Bsend_init");
#if HAVE_COUNT_VARIANTS
    check_refused(MPI_Psend_init(device, 2, 50, MPI_BYTE, next, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &request),
                  "MPI_Psend_init");
#endif
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
    check_refused(MPI_Bcast(device, 100, MPI_BYTE, 0, node), "MPI_Bcast"); /* the library's own */
    OK(MPI_Comm_free(&node));
    CHECK_DEVICE(device, 100, 4);
    free_device(device);
}

/* Something else is loaded and closed between messages, before and after the driver. */
static void load_something(void) {
    void* other = dlopen("libutil.so.1", RTLD_NOW);
    MPI_Barrier(MPI_COMM_WORLD);
    if (other) dlclose(other);
    MPI_Barrier(MPI_COMM_WORLD);
}

void collectives(void);

int main(int argc, char** argv) {
    const int late = argc > 2 && strcmp(argv[2], "late") == 0;
    OK(MPI_Init(&argc, &argv));
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    if (late)
        for (int i = 0; i < 3; i++) load_something();
    load_driver(argv[1]);
    if (!late) load_something();
    for (int i = 0; i < length_count; i++) {
        for (int how = 0; how < 3; how++) send_and_receive(lengths[i], how);
        every_pair(lengths[i]);
        exchanges(lengths[i]);
        persistent(lengths[i]);
        buffered_and_probed(lengths[i]);
    }
    gaps();
    truncation(1000);
    truncation(3 << 20);
    managed();
    collectives();
    refusals();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    printf("rank %d: all of a GPU's memory arrived\n", rank);
    return MPI_Finalize();
}
