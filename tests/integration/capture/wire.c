/* Sends random plaintext with every point-to-point call and every simple collective:  wire FILE
 *
 * One-sided operations too. Writes the plaintext to FILE and prints "slice NAME OFFSET LENGTH" for the part that each call carried, so
 * that a capture can be searched for it (test_wire.py). Two or more ranks; rank 0 sends to the last one,
 * collectives take all. */
#include "../mpi/harness.h"

enum { SLICES = 256, ROOM = 12 << 20 };
static unsigned char* plaintext;
static int used, last, count;
static const int lengths[] = {64, THRESHOLD, THRESHOLD + 1000};

/* The next n bytes of plaintext, the same on every rank. */
static unsigned char* slice(const char* name, int n) {
    CHECK(used + n <= ROOM, "more plaintext is needed");
    if (rank == 0) printf("slice %s %d %d\n", name, used, n);
    used += n;
    ++count;
    return plaintext + used - n;
}

typedef void (*sender)(const void*, int, int);

static void with_send(const void* b, int n, int tag) {
    OK(MPI_Send(b, n, MPI_BYTE, last, tag, MPI_COMM_WORLD));
}
static void with_ssend(const void* b, int n, int tag) {
    OK(MPI_Ssend(b, n, MPI_BYTE, last, tag, MPI_COMM_WORLD));
}
static void with_rsend(const void* b, int n, int tag) {
    OK(MPI_Rsend(b, n, MPI_BYTE, last, tag, MPI_COMM_WORLD));
}
static void with_bsend(const void* b, int n, int tag) {
    OK(MPI_Bsend(b, n, MPI_BYTE, last, tag, MPI_COMM_WORLD));
}
#define STARTED(lower, name)                                                 \
    static void with_##lower(const void* b, int n, int tag) {                \
        MPI_Request request;                                                 \
        OK(MPI_##name(b, n, MPI_BYTE, last, tag, MPI_COMM_WORLD, &request)); \
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));                           \
    }
STARTED(isend, Isend)
STARTED(issend, Issend)
STARTED(irsend, Irsend)
STARTED(ibsend, Ibsend)
#define PERSISTENT(lower, name)                                              \
    static void with_##lower(const void* b, int n, int tag) {                \
        MPI_Request request;                                                 \
        OK(MPI_##name(b, n, MPI_BYTE, last, tag, MPI_COMM_WORLD, &request)); \
        OK(MPI_Start(&request));                                             \
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));                           \
        OK(MPI_Request_free(&request));                                      \
    }
PERSISTENT(send_init, Send_init)
PERSISTENT(ssend_init, Ssend_init)
PERSISTENT(rsend_init, Rsend_init)
PERSISTENT(bsend_init, Bsend_init)

/* Every second run of 16 bytes travels: what is sent has to be packed first. */
static void with_strided(const void* b, int n, int tag) {
    unsigned char* spread = memory(2 * (size_t)n + 16);
    for (int i = 0; i < n; ++i) spread[i / 16 * 32 + i % 16] = ((const unsigned char*)b)[i];
    MPI_Datatype type;
    OK(MPI_Type_vector(n / 16, 16, 32, MPI_BYTE, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Send(spread, 1, type, last, tag, MPI_COMM_WORLD));
    if (n % 16) OK(MPI_Send(spread + n / 16 * 32, n % 16, MPI_BYTE, last, tag, MPI_COMM_WORLD));
    OK(MPI_Type_free(&type));
    free(spread);
}
#ifdef HAVE_COUNT_VARIANTS
static void with_send_c(const void* b, int n, int tag) {
    OK(MPI_Send_c(b, n, MPI_BYTE, last, tag, MPI_COMM_WORLD));
}
#endif

/* Rank 0 sends with `call`; the receive is posted before, for ready sends. */
static void point_to_point(const char* name, sender call) {
    for (int i = 0; i < 3; ++i) {
        int n = lengths[i], whole = call == with_strided ? n / 16 * 16 : n;
        unsigned char *mine = slice(name, n), *in = memory((size_t)n);
        MPI_Request request;
        if (rank == last) OK(MPI_Irecv(in, whole, MPI_BYTE, 0, i, MPI_COMM_WORLD, &request));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (rank == 0) call(mine, n, i);
        if (rank == last) {
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            if (whole < n)
                OK(MPI_Recv(in + whole, n - whole, MPI_BYTE, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            CHECK(memcmp(in, mine, (size_t)n) == 0, "%s of %d bytes delivered something else", name, n);
        }
        free(in);
    }
}

/* Rank 0 and the last one send each other a slice. */
static void exchanges(int how, const char* name) {
    for (int i = 0; i < 3; ++i) {
        int n = lengths[i], other = rank == 0 ? last : 0;
        unsigned char *first = slice(name, n), *second = slice(name, n);
        if (rank != 0 && rank != last) continue;
        unsigned char *out = rank == 0 ? first : second, *expected = rank == 0 ? second : first,
                      *in = memory((size_t)n);
        memcpy(in, out, (size_t)n);
        if (how == 0)
            OK(MPI_Sendrecv(out, n, MPI_BYTE, other, 1, in, n, MPI_BYTE, other, 1, MPI_COMM_WORLD,
                            MPI_STATUS_IGNORE));
        if (how == 1)
            OK(MPI_Sendrecv_replace(in, n, MPI_BYTE, other, 1, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
#ifdef HAVE_ISENDRECV
        MPI_Request request = MPI_REQUEST_NULL;
        if (how == 2)
            OK(MPI_Isendrecv(out, n, MPI_BYTE, other, 1, in, n, MPI_BYTE, other, 1, MPI_COMM_WORLD,
                             &request));
        if (how == 3)
            OK(MPI_Isendrecv_replace(in, n, MPI_BYTE, other, 1, other, 1, MPI_COMM_WORLD, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
#endif
        CHECK(memcmp(in, expected, (size_t)n) == 0, "%s of %d bytes delivered something else", name, n);
        free(in);
    }
}

#ifdef HAVE_ISENDRECV /* the same MPIs */
/* Seven partitions, received in one; started twice, so that what travels before the receiver is known to be
 * ready is seen too. */
static void partitioned(void) {
    for (int i = 0; i < 3; ++i) {
        int each = lengths[i] < 1000 ? 64 : (lengths[i] + 6) / 7, n = 7 * each;
        unsigned char* slices[] = {slice("MPI_Psend_init", n), slice("MPI_Psend_init", n)};
        unsigned char* buffer = memory((size_t)n);
        MPI_Request request = MPI_REQUEST_NULL;
        if (rank == 0)
            OK(MPI_Psend_init(buffer, 7, each, MPI_BYTE, last, i, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
        if (rank == last)
            OK(MPI_Precv_init(buffer, 7, each, MPI_BYTE, 0, i, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
        for (int start = 0; start < 2 && request != MPI_REQUEST_NULL; ++start) {
            if (rank == 0) memcpy(buffer, slices[start], (size_t)n);
            OK(MPI_Start(&request));
            if (rank == 0) OK(MPI_Pready_range(0, 6, request));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            CHECK(memcmp(buffer, slices[start], (size_t)n) == 0, "partitions delivered something else");
        }
        if (request != MPI_REQUEST_NULL) OK(MPI_Request_free(&request));
        free(buffer);
    }
}
#endif

enum {
    BCAST,
    REDUCE,
    ALLREDUCE,
    GATHER,
    GATHERV,
    SCATTER,
    SCATTERV,
    ALLGATHER,
    ALLGATHERV,
    ALLTOALL,
    ALLTOALLV,
    COLLECTIVES
};
static const char* const collective_names[] = {
    "MPI_Bcast",    "MPI_Reduce",    "MPI_Allreduce",  "MPI_Gather",   "MPI_Gatherv",  "MPI_Scatter",
    "MPI_Scatterv", "MPI_Allgather", "MPI_Allgatherv", "MPI_Alltoall", "MPI_Alltoallv"};

/* Reductions with MPI_REPLACE-like outcome: the other ranks give zeros, so that the plaintext is also in the
 * result. */
static void collective(int which) {
    MPI_Comm comm = MPI_COMM_WORLD;
    int n = 20000;
    unsigned char *shared = slice(collective_names[which], n * size),
                  *mine = shared + (size_t)n * (size_t)rank;
    unsigned char *in = calloc((size_t)n * (size_t)size, 1), *zeros = calloc((size_t)n, 1);
    int *counts = memory((size_t)size * sizeof(int)), *places = memory((size_t)size * sizeof(int));
    for (int i = 0; i < size; ++i) counts[i] = n, places[i] = i * n;
    switch (which) {
        case BCAST:
            if (rank == 0) memcpy(in, shared, (size_t)n);
            OK(MPI_Bcast(in, n, MPI_BYTE, 0, comm));
            break;
        case REDUCE:
            OK(MPI_Reduce(rank == last ? mine : zeros, in, n, MPI_BYTE, MPI_BOR, 0, comm));
            break;
        case ALLREDUCE:
            OK(MPI_Allreduce(rank == last ? mine : zeros, in, n, MPI_BYTE, MPI_BOR, comm));
            break;
        case GATHER:
            OK(MPI_Gather(mine, n, MPI_BYTE, in, n, MPI_BYTE, 0, comm));
            break;
        case GATHERV:
            OK(MPI_Gatherv(mine, n, MPI_BYTE, in, counts, places, MPI_BYTE, 0, comm));
            break;
        case SCATTER:
            OK(MPI_Scatter(shared, n, MPI_BYTE, in, n, MPI_BYTE, 0, comm));
            break;
        case SCATTERV:
            OK(MPI_Scatterv(shared, counts, places, MPI_BYTE, in, n, MPI_BYTE, 0, comm));
            break;
        case ALLGATHER:
            OK(MPI_Allgather(mine, n, MPI_BYTE, in, n, MPI_BYTE, comm));
            break;
        case ALLGATHERV:
            OK(MPI_Allgatherv(mine, n, MPI_BYTE, in, counts, places, MPI_BYTE, comm));
            break;
        case ALLTOALL:
            OK(MPI_Alltoall(shared, n, MPI_BYTE, in, n, MPI_BYTE, comm));
            break;
        default:
            OK(MPI_Alltoallv(shared, counts, places, MPI_BYTE, in, counts, places, MPI_BYTE, comm));
            break;
    }
    free(in), free(zeros), free(counts), free(places);
}

static void all_sends(void) {
    static const struct {
        const char* name;
        sender call;
    } sends[] = {{"MPI_Send", with_send},
                 {"MPI_Ssend", with_ssend},
                 {"MPI_Rsend", with_rsend},
                 {"MPI_Bsend", with_bsend},
                 {"MPI_Isend", with_isend},
                 {"MPI_Issend", with_issend},
                 {"MPI_Irsend", with_irsend},
                 {"MPI_Ibsend", with_ibsend},
                 {"MPI_Send_init", with_send_init},
                 {"MPI_Ssend_init", with_ssend_init},
                 {"MPI_Rsend_init", with_rsend_init},
                 {"MPI_Bsend_init", with_bsend_init},
#ifdef HAVE_COUNT_VARIANTS
                 {"MPI_Send_c", with_send_c},
#endif
                 {"MPI_Send-strided", with_strided}};
    int room = 4 << 20;
    void* attached = memory((size_t)room);
    OK(MPI_Buffer_attach(attached, room));
    for (size_t i = 0; i < sizeof sends / sizeof *sends; ++i) point_to_point(sends[i].name, sends[i].call);
    OK(MPI_Buffer_detach(&attached, &room));
    free(attached);
    exchanges(0, "MPI_Sendrecv");
    exchanges(1, "MPI_Sendrecv_replace");
#ifdef HAVE_ISENDRECV
    exchanges(2, "MPI_Isendrecv");
    exchanges(3, "MPI_Isendrecv_replace");
    partitioned();
#endif
}

enum {
    PUT,
    GET,
    ACCUMULATE,
    GET_ACCUMULATE,
    RPUT,
    RGET,
    RACCUMULATE,
    RGET_ACCUMULATE,
    STRIDED_PUT,
    ONE_SIDED
};
static const char* const one_sided_names[] = {
    "MPI_Put",  "MPI_Get",         "MPI_Accumulate",      "MPI_Get_accumulate", "MPI_Rput",
    "MPI_Rget", "MPI_Raccumulate", "MPI_Rget_accumulate", "MPI_Put-strided"};

/* Rank 0 moves a slice to or from the last rank's window, which holds it for those that fetch. */
static void access_window(int which, unsigned char* mine, unsigned char* in, int n, MPI_Win window) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Datatype runs;
    if (which == PUT) OK(MPI_Put(mine, n, MPI_BYTE, last, 0, n, MPI_BYTE, window));
    if (which == GET) OK(MPI_Get(in, n, MPI_BYTE, last, 0, n, MPI_BYTE, window));
    if (which == ACCUMULATE) OK(MPI_Accumulate(mine, n, MPI_BYTE, last, 0, n, MPI_BYTE, MPI_REPLACE, window));
    if (which == GET_ACCUMULATE)
        OK(MPI_Get_accumulate(mine, n, MPI_BYTE, in, n, MPI_BYTE, last, 0, n, MPI_BYTE, MPI_REPLACE, window));
    if (which == RPUT) OK(MPI_Rput(mine, n, MPI_BYTE, last, 0, n, MPI_BYTE, window, &request));
    if (which == RGET) OK(MPI_Rget(in, n, MPI_BYTE, last, 0, n, MPI_BYTE, window, &request));
    if (which == RACCUMULATE)
        OK(MPI_Raccumulate(mine, n, MPI_BYTE, last, 0, n, MPI_BYTE, MPI_REPLACE, window, &request));
    if (which == RGET_ACCUMULATE)
        OK(MPI_Rget_accumulate(NULL, 0, MPI_BYTE, in, n, MPI_BYTE, last, 0, n, MPI_BYTE, MPI_NO_OP, window,
                               &request));
    if (which == STRIDED_PUT) {
        OK(MPI_Type_vector(n / 32, 32, 64, MPI_BYTE, &runs));
        OK(MPI_Type_commit(&runs));
        OK(MPI_Put(mine, n / 32 * 32, MPI_BYTE, last, 0, 1, runs, window));
        OK(MPI_Type_free(&runs));
    }
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

static void one_sided(void) {
    unsigned char *cells, *in = memory(2 * (THRESHOLD + 1000));
    MPI_Win window;
    OK(MPI_Win_allocate(2 * (THRESHOLD + 1000), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &cells, &window));
    for (int which = 0; which < ONE_SIDED; ++which)
        for (int i = 0; i < 3; ++i) {
            int n = lengths[i];
            unsigned char* mine = slice(one_sided_names[which], n);
            OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, window));
            if (rank == last) memcpy(cells, mine, (size_t)n);
            OK(MPI_Win_unlock(rank, window));
            OK(MPI_Barrier(MPI_COMM_WORLD));
            OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, last, 0, window));
            if (rank == 0) access_window(which, mine, in, n, window);
            OK(MPI_Win_unlock(last, window));
            OK(MPI_Barrier(MPI_COMM_WORLD));
        }
    OK(MPI_Win_free(&window));
    free(in);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(argc > 1, "wire FILE");
    last = size - 1;
    plaintext = memory(ROOM);
    fill(plaintext, ROOM, 20261121);
    all_sends();
    for (int which = 0; which < COLLECTIVES; ++which) collective(which);
    one_sided();
    if (rank == 0) {
        FILE* file = fopen(argv[1], "wb");
        CHECK(file && fwrite(plaintext, 1, (size_t)used, file) == (size_t)used && fclose(file) == 0,
              "cannot write %s", argv[1]);
        printf("wire: %d slices\n", count);
    }
    free(plaintext);
    MPI_Barrier(
        MPI_COMM_WORLD); /* and a moment: MPICH 4.0.2 may hang in MPI_Finalize otherwise (docs/lab.md) */
    sleep_seconds(0.02);
    MPI_Finalize();
    return 0;
}
