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

/* Both ends, or one of them; within the node and across. */
static void partitioned(int n, int peer) {
#if HAVE_COUNT_VARIANTS
    enum { partitions = 3 };
    for (int how = 1; how < 4; how++) {
        const int sends = how & 1, receives = how >> 1, all = partitions * n;
        char *host = memory(all + 1), *sent = sends ? device_memory(all) : memory(all + 1);
        char* got = receives ? device_filled(all, 3) : memory(all + 1);
        MPI_Request requests[2];
        OK(MPI_Psend_init(sent, partitions, n, MPI_BYTE, peer, tag, MPI_COMM_WORLD, MPI_INFO_NULL,
                          &requests[0]));
        OK(MPI_Precv_init(got, partitions, n, MPI_BYTE, peer, tag, MPI_COMM_WORLD, MPI_INFO_NULL,
                          &requests[1]));
        for (int start = 0; start < 2; start++) {
            fill(host, all, seed_for(rank, peer, n) + start);
            sends ? to_device(sent, host, all) : (void)memcpy(sent, host, all);
            OK(MPI_Startall(2, requests));
            for (int i = partitions; i-- > 0;) OK(MPI_Pready(i, requests[0]));
            OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
            if (receives)
                CHECK_DEVICE(got, all, seed_for(peer, rank, n) + start);
            else
                CHECK_FILLED(got, all, seed_for(peer, rank, n) + start);
        }
        OK(MPI_Request_free(&requests[0]));
        OK(MPI_Request_free(&requests[1]));
        sends ? free_device(sent) : free(sent);
        receives ? free_device(got) : free(got);
        free(host);
    }
#else
    (void)n, (void)peer;
#endif
}

static void buffered_and_probed(int n) {
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    char* sent = device_filled(n, seed_for(rank, next, n));
    const int room = 3 * (n + MPI_BSEND_OVERHEAD) + 1000;
    void* buffer = memory(room);
    int detached;
    MPI_Request request;
    MPI_Message message;
    MPI_Status status;
    OK(MPI_Buffer_attach(buffer, room));
    OK(MPI_Bsend(sent, n, MPI_BYTE, next, tag, MPI_COMM_WORLD));
    OK(MPI_Ibsend(sent, n, MPI_BYTE, next, tag, MPI_COMM_WORLD, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Bsend_init(sent, n, MPI_BYTE, next, tag, MPI_COMM_WORLD, &request));
    OK(MPI_Start(&request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Request_free(&request));
    for (int i = 0; i < 3; i++) {
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

/* The library's own, and files. */
static void refusals(void) {
    MPI_Win win;
    MPI_Comm node;
    MPI_File file;
    char* device = device_filled(100, 4);
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
    OK(MPI_Comm_set_errhandler(node, MPI_ERRORS_RETURN));
    check_refused(MPI_Bcast(device, 100, MPI_BYTE, 0, node), "MPI_Bcast");
    check_refused(MPI_Win_create(device, 100, 1, MPI_INFO_NULL, node, &win), "MPI_Win_create");
    OK(MPI_File_open(MPI_COMM_WORLD, "/dev/null", MPI_MODE_WRONLY, MPI_INFO_NULL, &file));
    check_refused(MPI_File_write_at_all(file, 0, device, 100, MPI_BYTE, MPI_STATUS_IGNORE),
                  "MPI_File_write_at_all");
    OK(MPI_File_close(&file));
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
void windows(void);

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
        partitioned(lengths[i], rank ^ 1);
        partitioned(lengths[i], rank ^ 2);
        buffered_and_probed(lengths[i]);
    }
    gaps();
    truncation(1000);
    truncation(3 << 20);
    managed();
    collectives();
    windows();
    refusals();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    printf("rank %d: all of a GPU's memory arrived\n", rank);
    return MPI_Finalize();
}
