/* Random collectives:  collective_traffic [--seed N] [--operations N] [--threads T] [--log PREFIX]
 *                                         [--only NAME] [--any-order] [--reference]
 *
 * Every rank draws the same schedule from the seed: rounds of collectives of every kind on communicators of
 * every kind, blocking, non-blocking and persistent, several under way at once, mixed with messages between
 * two ranks, completed in any order. A rank writes one line to PREFIX.RANK for each completion, with a hash
 * of all bytes of its buffers, also those that nothing may touch: the same seed is compared plain and sealed
 * (test_collective_traffic.py). With --reference the same bytes are delivered by messages between two ranks,
 * as MPI says what a collective does: plain MPICH and Open MPI hang, crash and deliver other bytes when every
 * rank has types of its own, when several collectives are under way, and when persistent ones are started
 * again. With --any-order every rank starts the persistent ones in an order of its own.
 * T threads have schedules and communicators of their own. Promises: S2, M5 to M8, M10, M11. */
#include <pthread.h>

#include "collective_calls.h"
#include "collective_comms.h"
#include "schedule.h"

enum { MOST = 8, MOST_MIXED = 12, MOST_THREADS = 8, MOST_REQUESTS = MOST + 2 * MOST_MIXED };

struct mixed {               /* a message between two ranks, while collectives are under way */
    int from, to, n, before; /* sent before this operation of the round */
    unsigned char *out, *bytes;
};

struct lane {
    int number;
    pthread_t thread;
    struct shape shapes[SHAPES];
    struct generator generator, own; /* own: of this rank */
    long operations, done;
    FILE* log;
    int count, mixed;
    struct operation list[MOST];
    struct call calls[MOST];
    struct mixed messages[MOST_MIXED];
    MPI_Request requests[MOST_REQUESTS];
    int what[MOST_REQUESTS]; /* a call, MOST + message when received, -1 - message when sent */
    int started;
};

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static int reference, any_order, only = -1;

/* --- the schedule --- */

static int draw_bytes(struct generator* generator, int most) {
    static const int around[] = {1 << 10, 16 << 10, 64 << 10, 256 << 10};
    int dice = below(generator, 100), bytes;
    if (dice < 8)
        bytes = 0;
    else if (dice < 20)
        bytes = 1 + below(generator, 64);
    else if (dice < 30)
        bytes = 15 + below(generator, 3);
    else if (dice < 60)
        bytes = below(generator, 4096);
    else if (dice < 98)
        bytes = around[dice % 4] - 1 + below(generator, 3);
    else
        bytes = (1 << 20) + below(generator, 1 << 20);
    while (bytes > most) bytes /= 2;
    return bytes;
}

static int has_in_place(enum procedure procedure) {
    return procedure != BARRIER && procedure != BCAST && procedure < FIRST_NEIGHBOR;
}

static int fits(const struct operation* it, const struct shape* shape) {
    if (it->procedure >= FIRST_NEIGHBOR) return it->shape >= 7 && it->shape <= 10;
    if ((it->procedure == SCAN || it->procedure == EXSCAN) && it->shape == BETWEEN_GROUPS) return 0;
    (void)shape;
    return 1;
}

static void draw_operation(struct lane* lane, struct operation* it) {
    struct generator* g = &lane->generator;
    *it = (struct operation){.id = g->next_id++ * 64 + (uint64_t)lane->number};
    do {
        it->procedure = only >= 0 ? (enum procedure)only : (enum procedure)below(g, PROCEDURES);
        it->shape = below(g, SHAPES);
    } while (!fits(it, &lane->shapes[it->shape]));
    int dice = below(g, 10);
    it->form = dice < 4 ? BLOCKING : dice < 8 ? NONBLOCKING : PERSISTENT;
    int blocks = it->procedure == BCAST || (it->procedure >= REDUCE && it->procedure <= ALLREDUCE) ||
                         it->procedure == SCAN || it->procedure == EXSCAN
                     ? 1
                     : size;
    it->bytes = draw_bytes(g, (2 << 20) / blocks);
    it->base = it->bytes % 4 ? 0 : below(g, 3);
    it->unit = it->bytes % 2 ? 1 : 1 + below(g, 6);
    it->op = below(g, OPS);
    it->root = (unsigned)below(g, 1 << 16);
    it->root_in_first = below(g, 2);
    it->in_place = below(g, 3) == 0;
    it->in_place = it->in_place && has_in_place(it->procedure) && it->shape != BETWEEN_GROUPS;
    it->starts = 1 + below(g, 3);
    it->on_duplicate = it->form == NONBLOCKING && below(g, 10) == 0;
}

static void draw_round(struct lane* lane) {
    struct generator* g = &lane->generator;
    lane->count = 1 + below(g, MOST);
    for (int i = 0; i < lane->count; ++i) draw_operation(lane, &lane->list[i]);
    lane->mixed = below(g, 2) ? below(g, MOST_MIXED) : 0;
    for (int i = 0; i < lane->mixed; ++i)
        lane->messages[i] = (struct mixed){below(g, size),        below(g, size), draw_bytes(g, 1 << 20),
                                           below(g, lane->count), NULL,           NULL};
}

/* --- a round --- */

static void write_line(struct lane* lane, uint64_t id, int start, const char* what, const char* where,
                       int bytes, uint64_t result) {
    if (!lane->log) return;
    static const char* const forms[] = {"", "I", "init "};
    const struct operation* it = NULL;
    for (int i = 0; i < lane->count; ++i)
        if (lane->list[i].id == id) it = &lane->list[i];
    pthread_mutex_lock(&log_lock);
    fprintf(lane->log, "%d %llu.%d %s%s on %s, %d bytes, op %d%s%s: %016llx\n", lane->number,
            (unsigned long long)id, start, it ? forms[it->form] : "", what, where, bytes, it ? it->op : -1,
            it && it->in_place ? ", in place" : "", it && it->on_duplicate ? ", duplicate" : "",
            (unsigned long long)result);
    pthread_mutex_unlock(&log_lock);
}

static void completed(struct lane* lane, struct call* call) {
    const struct operation* it = &call->operation;
    write_line(lane, it->id, call->start, procedure_names[it->procedure], call->shape->name, it->bytes,
               result_of(call));
}

static void send_mixed(struct lane* lane, int before) {
    for (int i = 0; i < lane->mixed; ++i) {
        struct mixed* message = &lane->messages[i];
        if (message->before != before || message->from != rank) continue;
        unsigned char* out = memory((size_t)message->n + 1);
        fill(out, (size_t)message->n, mix(lane->generator.next_id, (uint64_t)i, 4));
        lane->what[lane->started] = -1 - i;
        message->out = out;
        OK(MPI_Isend(out, message->n, MPI_BYTE, message->to, 100 + i, lane->shapes[0].comm,
                     &lane->requests[lane->started++]));
    }
}

static void receive_mixed(struct lane* lane) {
    for (int i = 0; i < lane->mixed; ++i) {
        struct mixed* message = &lane->messages[i];
        if (message->to != rank) continue;
        message->bytes = memory((size_t)message->n + 1);
        lane->what[lane->started] = MOST + i;
        OK(MPI_Irecv(message->bytes, message->n, MPI_BYTE, message->from, 100 + i, lane->shapes[0].comm,
                     &lane->requests[lane->started++]));
    }
}

static void finish(struct lane* lane, int request) {
    int what = lane->what[request];
    CHECK(what != 1000, "request %d completed twice", request);
    lane->what[request] = 1000;
    if (what >= 0 && what < MOST) {
        completed(lane, &lane->calls[what]);
    } else if (what >= 0) {
        struct mixed* message = &lane->messages[what - MOST];
        CHECK_FILLED(message->bytes, (size_t)message->n,
                     mix(lane->generator.next_id, (uint64_t)(what - MOST), 4));
    }
}

static void note(struct lane* lane, int request, int* left) {
    finish(lane, request);
    --*left;
}

/* In an order of this rank's own. */
static void complete_all(struct lane* lane) {
    int count = lane->started, left = count, how = below(&lane->own, 7), indices[MOST_REQUESTS], done,
        flag = 0;
    MPI_Request* requests = lane->requests;
    if (how == 0) OK(MPI_Waitall(count, requests, MPI_STATUSES_IGNORE));
    while (how == 1 && !flag) OK(MPI_Testall(count, requests, &flag, MPI_STATUSES_IGNORE));
    for (int i = 0; how < 2 && i < count; ++i) note(lane, i, &left);
    while (left > 0 && (how == 2 || how == 3)) {
        flag = 1;
        if (how == 2) OK(MPI_Waitany(count, requests, &done, MPI_STATUS_IGNORE));
        if (how == 3) OK(MPI_Testany(count, requests, &done, &flag, MPI_STATUS_IGNORE));
        if (!flag) continue;
        CHECK(done != MPI_UNDEFINED, "no request is active, %d have not completed", left);
        note(lane, done, &left);
    }
    while (left > 0 && (how == 4 || how == 5)) {
        if (how == 4) OK(MPI_Waitsome(count, requests, &done, indices, MPI_STATUSES_IGNORE));
        if (how == 5) OK(MPI_Testsome(count, requests, &done, indices, MPI_STATUSES_IGNORE));
        CHECK(done != MPI_UNDEFINED, "no request is active, %d have not completed", left);
        for (int i = 0; i < done; ++i) note(lane, indices[i], &left);
    }
    while (left > 0) { /* one after the other, with a look at others between */
        int i = below(&lane->own, count);
        if (lane->what[i] == 1000) continue;
        OK(MPI_Test(&requests[i], &flag, MPI_STATUS_IGNORE));
        if (!flag && below(&lane->own, 4) == 0) OK(MPI_Wait(&requests[i], MPI_STATUS_IGNORE)), flag = 1;
        if (flag) note(lane, i, &left);
    }
    lane->started = 0;
}

/* Those with at least `start` + 1 starts. */
static void start_persistent(struct lane* lane, int start) {
    int order[MOST], n = 0;
    for (int i = 0; i < lane->count; ++i) {
        struct call* call = &lane->calls[i];
        if (call->shape && call->operation.form == PERSISTENT && call->operation.starts > start)
            order[n++] = i;
    }
    for (int i = n - 1; any_order && i > 0; --i) {
        int j = below(&lane->own, i + 1), other = order[i];
        order[i] = order[j], order[j] = other;
    }
    MPI_Request together[MOST];
    int at_once = below(&lane->own, 2);
    for (int k = 0; k < n; ++k) {
        struct call* call = &lane->calls[order[k]];
        call->start = start;
        if (start > 0) refill(call);
        lane->what[lane->started + k] = order[k];
        together[k] = call->request;
        if (!at_once) OK(MPI_Start(&together[k]));
    }
    if (at_once && n > 0) OK(MPI_Startall(n, together));
    for (int k = 0; k < n; ++k) lane->requests[lane->started + k] = together[k];
    lane->started += n;
}

/* One after the other, each to its end. */
static void run_alone(struct lane* lane, int i, enum form form) {
    struct operation operation = lane->list[i];
    int starts = operation.form == PERSISTENT ? operation.starts : 1;
    operation.form = form, operation.on_duplicate = 0;
    for (int start = 0; start < starts; ++start) {
        make_call(&lane->calls[i], &operation, &lane->shapes[operation.shape], start);
        completed(lane, &lane->calls[i]);
        free_call(&lane->calls[i]);
    }
}

/* The same results without collectives. */
static void run_reference(struct lane* lane) {
    for (int i = 0; i < lane->count; ++i)
        if (lane->shapes[lane->list[i].shape].comm != MPI_COMM_NULL) run_alone(lane, i, REFERENCE);
}

/* How it is called here. Within a node collectives are the MPI library's, and have bugs: persistent ones do,
 * and Open MPI 5.0 hangs in MPI_Ialltoallw in place with nothing to exchange. */
static enum form form_here(const struct operation* it, const struct shape* shape) {
    if (!shape->spans_nodes && (it->form == PERSISTENT || it->in_place)) return BLOCKING;
#ifndef HAVE_PERSISTENT_COLLECTIVES
    if (it->form == PERSISTENT) return BLOCKING;
#endif
    return it->form;
}

static void run_round(struct lane* lane) {
    lane->started = 0;
    memset(lane->calls, 0, sizeof lane->calls);
    for (int i = 0; i < lane->count; ++i) { /* the persistent ones first */
        const struct operation* it = &lane->list[i];
        const struct shape* shape = &lane->shapes[it->shape];
        if (shape->comm == MPI_COMM_NULL || form_here(it, shape) != PERSISTENT) continue;
        make_call(&lane->calls[i], it, shape, 0);
    }
    receive_mixed(lane);
    start_persistent(lane, 0);
    for (int i = 0; i < lane->count; ++i) {
        const struct operation* it = &lane->list[i];
        const struct shape* shape = &lane->shapes[it->shape];
        send_mixed(lane, i);
        if (shape->comm == MPI_COMM_NULL) continue;
        enum form form = form_here(it, shape);
        if (form == NONBLOCKING) {
            make_call(&lane->calls[i], it, shape, 0);
            lane->what[lane->started] = i;
            lane->requests[lane->started++] = lane->calls[i].request;
        } else if (form == BLOCKING) {
            run_alone(lane, i, BLOCKING);
        }
    }
    complete_all(lane);
    for (int start = 1; start < 3; ++start) {
        start_persistent(lane, start);
        complete_all(lane);
    }
    for (int i = 0; i < lane->count; ++i) {
        struct call* call = &lane->calls[i];
        if (!call->shape) continue;
        if (call->operation.form == PERSISTENT) OK(MPI_Request_free(&call->request));
        free_call(call);
    }
    for (int i = 0; i < lane->mixed; ++i) free(lane->messages[i].bytes), free(lane->messages[i].out);
}

static void* run_lane(void* argument) {
    struct lane* lane = argument;
    while (lane->done < lane->operations) {
        draw_round(lane);
        if (reference)
            run_reference(lane);
        else
            run_round(lane);
        lane->done += lane->count;
    }
    return NULL;
}

/* --- the program --- */

static const char* option(int argc, char** argv, const char* name, const char* otherwise) {
    for (int i = 1; i < argc; ++i)
        if (strcmp(argv[i], name) == 0) return i + 1 < argc ? argv[i + 1] : "";
    return otherwise;
}

int main(int argc, char** argv) {
    uint64_t seed = strtoull(option(argc, argv, "--seed", "1"), NULL, 10);
    long operations = atol(option(argc, argv, "--operations", "500"));
    int threads = atoi(option(argc, argv, "--threads", "1"));
    const char *prefix = option(argc, argv, "--log", NULL), *one = option(argc, argv, "--only", NULL);
    any_order = option(argc, argv, "--any-order", NULL) != NULL;
    reference = option(argc, argv, "--reference", NULL) != NULL;
    for (int i = 0; one && i < PROCEDURES; ++i)
        if (strcmp(one, procedure_names[i]) == 0) only = i;
    MPI_Init_thread(&argc, &argv, threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &threads_given);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    sealed = getenv("LD_PRELOAD") && strstr(getenv("LD_PRELOAD"), "libmpisec");
    CHECK(threads >= 1 && threads <= MOST_THREADS, "--threads takes 1 to %d", MOST_THREADS);
    CHECK(!one || only >= 0, "no collective is called %s", one);
    FILE* log = NULL;
    if (prefix) {
        char name[4096];
        snprintf(name, sizeof name, "%s.%d", prefix, rank);
        log = fopen(name, "w");
        CHECK(log, "cannot write %s", name);
    }
    struct lane* lanes = calloc((size_t)threads, sizeof *lanes);
    long done = 0;
    for (int i = 0; i < threads; ++i) {
        lanes[i].number = i, lanes[i].log = log, lanes[i].operations = operations / threads;
        lanes[i].generator.state = seed * 1000003u + (uint64_t)i;
        lanes[i].own.state = seed * 7777u + (uint64_t)(i * 64 + rank);
        make_shapes(lanes[i].shapes);
    }
    for (int i = 1; i < threads; ++i)
        CHECK(pthread_create(&lanes[i].thread, NULL, run_lane, &lanes[i]) == 0, "no thread");
    run_lane(&lanes[0]);
    for (int i = 1; i < threads; ++i) pthread_join(lanes[i].thread, NULL);
    for (int i = 0; i < threads; ++i) {
        done += lanes[i].done;
        free_shapes(lanes[i].shapes);
    }
    free(lanes);
    if (log) fclose(log);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("collective traffic: %ld operations done, seed %llu\n", done, (unsigned long long)seed),
            fflush(stdout);
    MPI_Barrier(
        MPI_COMM_WORLD); /* and a moment: MPICH 4.0.2 may hang in MPI_Finalize otherwise (docs/lab.md) */
    sleep_seconds(0.02);
    MPI_Finalize();
    return 0;
}
