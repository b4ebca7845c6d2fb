/* M6 M8 M10: partitioned messages: whatever order and thread makes partitions ready, and however differently
 * the two sides cut the message, each arrives where it belongs, start after start; they match each other in
 * the order of their initializations and nothing else. */
#include <pthread.h>

#include "harness.h"
#include "rules.h"

#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)

/* What plain libraries get wrong where they serve the message themselves. */
static int library_serves(int peer) {
#if defined(OMPI_MAJOR_VERSION)
    (void)peer;
    return !sealed;
#else
    return plain_to(peer);
#endif
}

enum { STARTS = 4, MOST_PARTITIONS = 64, THREADS = 4 };

struct cut {
    int sends, receives, bytes; /* partitions of either side, bytes of the whole message */
};
static const struct cut cuts[] = {
    {1, 1, 1},          {16, 16, 16 * 65536}, {4, 12, 12 * 1000},
    {12, 4, 12 * 1000}, {1, 8, 8 * 70000},    {8, 1, 8 * 700},
    {3, 3, 0},          {64, 2, 64 * 3},      {2, 3, 6 * 600 * 1000},
    {5, 5, 5},
};
enum { CUTS = sizeof cuts / sizeof *cuts };

struct ends {
    unsigned char *out, *in;
    MPI_Request requests[2]; /* of the receive, of the send */
    struct cut cut;
    int peer, tag;
};

static void open_ends(struct ends* ends, int peer, int tag, struct cut cut, MPI_Comm comm) {
    *ends = (struct ends){.cut = cut, .peer = peer, .tag = tag};
    ends->out = memory((size_t)cut.bytes + 1), ends->in = memory((size_t)cut.bytes + 1);
    OK(MPI_Precv_init(ends->in, cut.receives, cut.bytes / cut.receives, MPI_BYTE, peer, tag, comm,
                      MPI_INFO_NULL, &ends->requests[0]));
    OK(MPI_Psend_init(ends->out, cut.sends, cut.bytes / cut.sends, MPI_BYTE, peer, tag, comm, MPI_INFO_NULL,
                      &ends->requests[1]));
}

static void prepare(struct ends* ends, int start) {
    memset(ends->in, 0xee, (size_t)ends->cut.bytes);
    fill(ends->out, (size_t)ends->cut.bytes, seed_of(rank, ends->peer, ends->tag, start));
}

static void check(struct ends* ends, int start, const MPI_Status* status) {
    CHECK_FILLED(ends->in, (size_t)ends->cut.bytes, seed_of(ends->peer, rank, ends->tag, start));
    if (!library_serves(ends->peer)) CHECK_STATUS(status, ends->peer, ends->tag, ends->cut.bytes);
}

static void close_ends(struct ends* ends) {
    for (int i = 0; i < 2; ++i) {
        OK(MPI_Request_free(&ends->requests[i]));
        CHECK(ends->requests[i] == MPI_REQUEST_NULL, "the handle of a freed request is not null");
    }
    free(ends->out), free(ends->in);
}

/* In an order, and by a procedure, that differ from start to start. */
static void make_ready(struct ends* ends, int start) {
    int n = ends->cut.sends, list[MOST_PARTITIONS];
    switch (start % 4) {
        case 0:
            for (int i = 0; i < n; ++i) OK(MPI_Pready(i, ends->requests[1]));
            break;
        case 1:
            for (int i = n - 1; i >= 0; --i) OK(MPI_Pready(i, ends->requests[1]));
            break;
        case 2:
            OK(MPI_Pready_range(n / 2, n - 1, ends->requests[1]));
            if (n / 2 > 0) OK(MPI_Pready_range(0, n / 2 - 1, ends->requests[1]));
            break;
        default:
            for (int i = 0; i < n; ++i) list[i] = (i * 7 + 3) % n;
            if (n % 7 == 0)
                for (int i = 0; i < n; ++i) list[i] = i;
            OK(MPI_Pready_list(n, list, ends->requests[1]));
    }
}

/* What MPI_Parrived says is there is there. */
static void wait_for_partitions(struct ends* ends, int start) {
    int each = ends->cut.bytes / ends->cut.receives;
    unsigned char* expected = memory((size_t)ends->cut.bytes + 1);
    fill(expected, (size_t)ends->cut.bytes, seed_of(ends->peer, rank, ends->tag, start));
    for (int i = ends->cut.receives - 1; i >= 0; --i) {
        int arrived = 0;
        while (!arrived) OK(MPI_Parrived(ends->requests[0], i, &arrived));
        CHECK(memcmp(ends->in + i * each, expected + i * each, (size_t)each) == 0,
              "partition %d of %d was said to have arrived, but is not there", i, ends->cut.receives);
    }
    free(expected);
}

static void with(int peer) {
    for (int k = 0; k < CUTS; ++k) {
        struct ends ends;
        if (size > 4 && (k + rank + peer) % 4 != 0) continue; /* in jobs of many ranks each pair does some */
        if (library_serves(peer) && (cuts[k].sends != cuts[k].receives || cuts[k].bytes == 0)) continue;
        open_ends(&ends, peer, 500 + k, cuts[k], MPI_COMM_WORLD);
        for (int start = 0; start < STARTS; ++start) {
            MPI_Status statuses[2];
            int arrived = 0;
            prepare(&ends, start);
            if (!library_serves(peer)) {
                OK(MPI_Parrived(ends.requests[0], 0, &arrived));
                CHECK(arrived, "an inactive request's partitions have not arrived");
            }
            OK(MPI_Startall(2, ends.requests));
            make_ready(&ends, start);
            if (start % 2) wait_for_partitions(&ends, start);
            OK(MPI_Waitall(2, ends.requests, statuses));
            check(&ends, start, &statuses[0]);
        }
        close_ends(&ends);
    }
}

/* A partition that is not ready keeps the message, and no other, from completing; ordinary messages of the
 * same tag go their own way. */
static void matched_with_their_like(int peer) {
    struct cut cut = {4, 2, 4 * 5000};
    struct ends first, second;
    int out = rank, in = -1, flag = 1, arrived = 1;
    MPI_Status status, statuses[2];
    if (library_serves(peer)) return;
    open_ends(&first, peer, 550, cut, MPI_COMM_WORLD);
    open_ends(&second, peer, 550, cut, MPI_COMM_WORLD);
    prepare(&first, 1), prepare(&second, 2);
    /* Started in another order on either side. */
    OK(MPI_Startall(2, rank < peer ? first.requests : second.requests));
    OK(MPI_Startall(2, rank < peer ? second.requests : first.requests));
    OK(MPI_Pready_range(0, 3, second.requests[1]));
    OK(MPI_Pready_range(0, 2, first.requests[1]));
    OK(MPI_Sendrecv(&out, 1, MPI_INT, peer, 550, &in, 1, MPI_INT, MPI_ANY_SOURCE, 550, MPI_COMM_WORLD,
                    &status));
    CHECK(in == peer, "%d was received in place of %d", in, peer);
    OK(MPI_Waitall(2, second.requests, statuses));
    check(&second, 2, &statuses[0]);
    do OK(MPI_Parrived(first.requests[0], 0, &arrived));
    while (!arrived);
    OK(MPI_Parrived(first.requests[0], 1, &arrived));
    CHECK(!arrived, "a partition arrived before all of it was ready");
    OK(MPI_Test(&first.requests[0], &flag, &status));
    CHECK(!flag, "a receive is complete though a partition is not ready");
    OK(MPI_Request_get_status(first.requests[1], &flag, &status));
    CHECK(!flag, "a send is complete though a partition is not ready");
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Pready(3, first.requests[1]));
    do OK(MPI_Request_get_status(first.requests[0], &flag, &status));
    while (!flag);
    OK(MPI_Waitall(2, first.requests, statuses));
    check(&first, 1, &statuses[0]);
    close_ends(&first), close_ends(&second);
}

/* Empty partitions, each of which is made ready only when the one before has arrived. */
static void empty_one_by_one(int peer) {
    enum { PARTITIONS = 4 };
    if (library_serves(peer)) return;
    struct ends ends;
    open_ends(&ends, peer, 555, (struct cut){PARTITIONS, PARTITIONS, 0}, MPI_COMM_WORLD);
    for (int start = 0; start < 2; ++start) {
        MPI_Status statuses[2];
        OK(MPI_Startall(2, ends.requests));
        for (int i = 0; i < PARTITIONS; ++i) {
            int arrived = 0;
            const double end = now() + 20;
            OK(MPI_Pready(i, ends.requests[1]));
            while (!arrived && now() < end) OK(MPI_Parrived(ends.requests[0], i, &arrived));
            CHECK(arrived, "empty partition %d has not arrived after 20 s", i);
            OK(MPI_Sendrecv(NULL, 0, MPI_INT, peer, 555, NULL, 0, MPI_INT, peer, 555, MPI_COMM_WORLD,
                            MPI_STATUS_IGNORE));
        }
        OK(MPI_Waitall(2, ends.requests, statuses));
        check(&ends, start, &statuses[0]);
    }
    close_ends(&ends);
}

/* Each side's datatype has holes of its own; what lies in them stays as it was. */
static void with_holes(int peer) {
    enum { PARTITIONS = 6, PER = 50 };
    if (library_serves(peer)) return;
    MPI_Datatype pairs, spread;
    MPI_Request requests[2];
    struct spread {
        int data[4], hole;
    }* in = memory(PARTITIONS * PER * sizeof *in);
    struct pair {
        int data[2], hole;
    }* out = memory(PARTITIONS * PER * 2 * sizeof *out);
    OK(MPI_Type_contiguous(2, MPI_INT, &pairs));
    OK(MPI_Type_create_resized(pairs, 0, sizeof *out, &spread));
    OK(MPI_Type_free(&pairs)), pairs = spread;
    OK(MPI_Type_contiguous(4, MPI_INT, &spread));
    MPI_Datatype whole = spread;
    OK(MPI_Type_create_resized(whole, 0, sizeof *in, &spread));
    OK(MPI_Type_free(&whole));
    OK(MPI_Type_commit(&pairs)), OK(MPI_Type_commit(&spread));
    OK(MPI_Psend_init(out, PARTITIONS, 2 * PER, pairs, peer, 560, MPI_COMM_WORLD, MPI_INFO_NULL,
                      &requests[0]));
    OK(MPI_Precv_init(in, PARTITIONS / 2, 2 * PER, spread, peer, 560, MPI_COMM_WORLD, MPI_INFO_NULL,
                      &requests[1]));
    OK(MPI_Type_free(&pairs)), OK(MPI_Type_free(&spread));
    for (int start = 0; start < STARTS; ++start) {
        for (int i = 0; i < PARTITIONS * PER * 2; ++i) out[i] = (struct pair){{i + rank + start, -i}, -1};
        memset(in, 0xee, PARTITIONS * PER * sizeof *in);
        OK(MPI_Startall(2, requests));
        OK(MPI_Pready_range(0, PARTITIONS - 1, requests[0]));
        OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        for (int i = 0; i < PARTITIONS * PER; ++i) {
            int right = in[i].hole == (int)0xeeeeeeee;
            for (int k = 0; k < 2; ++k)
                right = right && in[i].data[2 * k] == 2 * i + k + peer + start &&
                        in[i].data[2 * k + 1] == -2 * i - k;
            CHECK(right, "element %d of a type with holes arrived wrong", i);
        }
    }
    for (int i = 0; i < 2; ++i) OK(MPI_Request_free(&requests[i]));
    free(in), free(out);
}

struct worker {
    pthread_t id;
    struct ends* ends;
    int first;
};
static void* make_some_ready(void* argument) {
    struct worker* me = argument;
    for (int i = me->first; i < me->ends->cut.sends; i += THREADS) OK(MPI_Pready(i, me->ends->requests[1]));
    return NULL;
}

/* Threads make partitions ready while another one waits for the whole. */
static void by_threads(int peer) {
    struct ends ends;
    struct cut cut = {64, 16, 64 * 20000};
    if (threads_given < MPI_THREAD_MULTIPLE || library_serves(peer)) return;
    open_ends(&ends, peer, 570, cut, MPI_COMM_WORLD);
    for (int start = 0; start < 8; ++start) {
        struct worker workers[THREADS];
        MPI_Status statuses[2];
        prepare(&ends, start);
        OK(MPI_Startall(2, ends.requests));
        for (int i = 0; i < THREADS; ++i) {
            workers[i] = (struct worker){.ends = &ends, .first = i};
            CHECK(pthread_create(&workers[i].id, NULL, make_some_ready, &workers[i]) == 0, "no thread");
        }
        if (start % 2) wait_for_partitions(&ends, start);
        OK(MPI_Waitall(2, ends.requests, statuses));
        check(&ends, start, &statuses[0]);
        for (int i = 0; i < THREADS; ++i) pthread_join(workers[i].id, NULL);
    }
    close_ends(&ends);
}

/* Many messages at once, more than may be under way, made ready before their receives are started; sends that
 * are freed while they are active. */
static void many(int peer) {
    enum { MANY = 24 };
    struct ends ends[MANY];
    struct cut cut = {32, 32, 32 * 3000};
    if (library_serves(peer)) return;
    for (int i = 0; i < MANY; ++i) open_ends(&ends[i], peer, 580 + i % 3, cut, MPI_COMM_WORLD);
    for (int start = 0; start < 2; ++start) {
        for (int i = 0; i < MANY; ++i) prepare(&ends[i], start + i);
        for (int i = 0; i < MANY; ++i) OK(MPI_Start(&ends[i].requests[1]));
        for (int i = MANY - 1; i >= 0; --i) OK(MPI_Pready_range(0, cut.sends - 1, ends[i].requests[1]));
        for (int i = 0; i < MANY; ++i) OK(MPI_Start(&ends[i].requests[0]));
        for (int i = 0; i < MANY; ++i) {
            MPI_Status status;
            if (start == 1) OK(MPI_Request_free(&ends[i].requests[1]));
            OK(MPI_Wait(&ends[i].requests[0], &status));
            if (start == 0) OK(MPI_Wait(&ends[i].requests[1], MPI_STATUS_IGNORE));
            CHECK_FILLED(ends[i].in, (size_t)cut.bytes, seed_of(peer, rank, ends[i].tag, start + i));
        }
    }
    OK(MPI_Barrier(MPI_COMM_WORLD)); /* the freed sends are over when their receivers say so */
    for (int i = 0; i < MANY; ++i) {
        OK(MPI_Request_free(&ends[i].requests[0]));
        free(ends[i].out), free(ends[i].in);
    }
}

/* Started again and again after their communicator was freed. */
static void after_communicator(void) {
    MPI_Comm comm;
    MPI_Request requests[2];
    long out[2], in[2];
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Precv_init(in, 2, 1, MPI_LONG, from, 4, comm, MPI_INFO_NULL, &requests[0]));
    OK(MPI_Psend_init(out, 2, 1, MPI_LONG, to, 4, comm, MPI_INFO_NULL, &requests[1]));
    OK(MPI_Comm_free(&comm));
    for (int i = 0; i < 3; ++i) {
        out[0] = 10 * rank + i, out[1] = -out[0], in[0] = in[1] = -1;
        OK(MPI_Startall(2, requests));
        OK(MPI_Pready_range(0, 1, requests[1]));
        OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        CHECK(in[0] == 10 * from + i && in[1] == -in[0], "%ld and %ld were received", in[0], in[1]);
    }
    for (int i = 0; i < 2; ++i) OK(MPI_Request_free(&requests[i]));
}

#define CLASS(call, expected)                                                                              \
    do {                                                                                                   \
        int code = (call);                                                                                 \
        CHECK(class_of(code) == (expected), "%s gave class %d, not %s", #call, class_of(code), #expected); \
    } while (0)

/* What a program must not do is an error of the right class, and changes nothing. */
static void errors(int peer) {
    struct ends ends;
    struct cut cut = {4, 4, 4000};
    MPI_Request ordinary, none = MPI_REQUEST_NULL, made;
    MPI_Status statuses[2];
    int twice[] = {3, 3}, beyond[] = {3, 4}, flag = 0, token = 0;
    if (library_serves(peer)) return;
    CLASS(MPI_Precv_init(&token, 1, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &made),
          MPI_ERR_RANK);
    CLASS(MPI_Precv_init(&token, 1, 1, MPI_INT, peer, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_INFO_NULL, &made),
          MPI_ERR_TAG);
    CLASS(MPI_Psend_init(&token, -1, 1, MPI_INT, peer, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &made), MPI_ERR_ARG);
    CLASS(MPI_Psend_init(&token, 1, -1, MPI_INT, peer, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &made),
          MPI_ERR_COUNT);
    CLASS(MPI_Psend_init(&token, 1, 1, MPI_DATATYPE_NULL, peer, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &made),
          MPI_ERR_TYPE);
    CLASS(MPI_Psend_init(&token, 1, 1, MPI_INT, size, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &made), MPI_ERR_RANK);
    open_ends(&ends, peer, 590, cut, MPI_COMM_WORLD);
    prepare(&ends, 0);
    CLASS(MPI_Pready(0, ends.requests[1]), MPI_ERR_REQUEST); /* before it is started */
    CLASS(MPI_Pready(0, none), MPI_ERR_REQUEST);
    OK(MPI_Irecv(&token, 1, MPI_INT, peer, 591, MPI_COMM_WORLD, &ordinary));
    CLASS(MPI_Pready(0, ordinary), MPI_ERR_REQUEST);
    CLASS(MPI_Parrived(ordinary, 0, &flag), MPI_ERR_REQUEST);
    OK(MPI_Startall(2, ends.requests));
    CLASS(MPI_Start(&ends.requests[1]), MPI_ERR_REQUEST);
    CLASS(MPI_Pready(0, ends.requests[0]), MPI_ERR_REQUEST); /* of a receive */
    CLASS(MPI_Parrived(ends.requests[1], 0, &flag), MPI_ERR_REQUEST);
    CLASS(MPI_Pready(4, ends.requests[1]), MPI_ERR_ARG);
    CLASS(MPI_Pready(-1, ends.requests[1]), MPI_ERR_ARG);
    CLASS(MPI_Pready_range(2, 4, ends.requests[1]), MPI_ERR_ARG);
    CLASS(MPI_Pready_list(2, twice, ends.requests[1]), MPI_ERR_ARG);
    CLASS(MPI_Pready_list(2, beyond, ends.requests[1]), MPI_ERR_ARG);
    CLASS(MPI_Parrived(ends.requests[0], 4, &flag), MPI_ERR_ARG);
    OK(MPI_Pready(2, ends.requests[1]));
    CLASS(MPI_Pready(2, ends.requests[1]), MPI_ERR_ARG); /* twice */
    CLASS(MPI_Pready_range(1, 3, ends.requests[1]), MPI_ERR_ARG);
    OK(MPI_Pready_range(0, 1, ends.requests[1]));
    OK(MPI_Pready(3, ends.requests[1]));
    OK(MPI_Waitall(2, ends.requests, statuses));
    check(&ends, 0, &statuses[0]);
    OK(MPI_Send(&rank, 1, MPI_INT, peer, 591, MPI_COMM_WORLD));
    OK(MPI_Wait(&ordinary, MPI_STATUS_IGNORE));
    close_ends(&ends);
}

/* A message that is longer than the receiver's buffer: nothing beyond is written, and the sender does not
 * wait for ever. */
static void too_long(int peer) {
    if (library_serves(peer)) return;
    unsigned char *out = memory(40000), *in = memory(20000);
    MPI_Request requests[2];
    MPI_Status status;
    memset(in, 0x55, 20000);
    OK(MPI_Psend_init(out, 40, 1000, MPI_BYTE, peer, 595, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]));
    OK(MPI_Precv_init(in, 2, 5000, MPI_BYTE, peer, 595, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]));
    for (int start = 0; start < 2; ++start) {
        OK(MPI_Startall(2, requests));
        OK(MPI_Pready_range(0, 39, requests[0]));
        CLASS(MPI_Wait(&requests[1], &status), MPI_ERR_TRUNCATE);
        OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
        for (int i = 10000; i < 20000; ++i) CHECK(in[i] == 0x55, "byte %d behind the buffer was written", i);
    }
    for (int i = 0; i < 2; ++i) OK(MPI_Request_free(&requests[i]));
    free(out), free(in);
}

static void with_nobody(void) {
    int out[4] = {0}, in[4] = {1, 2, 3, 4}, arrived = 0;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    if (!sealed) return;
    OK(MPI_Psend_init(out, 4, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]));
    OK(MPI_Precv_init(in, 2, 2, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]));
    for (int start = 0; start < 2; ++start) {
        OK(MPI_Startall(2, requests));
        OK(MPI_Pready_range(0, 3, requests[0]));
        OK(MPI_Parrived(requests[1], 1, &arrived));
        CHECK(arrived, "what comes from MPI_PROC_NULL has not arrived");
        OK(MPI_Waitall(2, requests, statuses));
        CHECK_STATUS(&statuses[1], MPI_PROC_NULL, MPI_ANY_TAG, 0);
        CHECK(in[0] == 1 && in[3] == 4, "something came from MPI_PROC_NULL");
    }
    for (int i = 0; i < 2; ++i) OK(MPI_Request_free(&requests[i]));
}

void rule_partitioned(void) {
#if defined( \
    OPEN_MPI) /* plain 5.0.11: communicators that are made after partitioned messages may never be done */
    if (!sealed) return;
#endif
    after_communicator();
    with_nobody();
    for (int round = 0; round < size; ++round) {
        int peer = partner_in(round);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (peer == rank) {
            if (!library_serves(rank)) with(rank);
            for (int barrier = 0; barrier < 2; ++barrier) OK(MPI_Barrier(MPI_COMM_WORLD));
            continue;
        }
        with(peer);
        empty_one_by_one(peer);
        with_holes(peer);
        by_threads(peer);
        errors(peer);
        too_long(peer);
        if (library_serves(peer)) {
            for (int barrier = 0; barrier < 2; ++barrier) OK(MPI_Barrier(MPI_COMM_WORLD));
            continue;
        }
        matched_with_their_like(peer);
        many(peer);
    }
}

#else
void rule_partitioned(void) {}
#endif
