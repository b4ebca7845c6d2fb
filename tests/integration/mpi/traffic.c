/* Random traffic (M3, M4):  traffic [--seed N] [--operations N] [--seconds S] [--threads T] [--log
 * PREFIX]
 *
 * Sends `operations` messages among all ranks as schedule.h says, in T threads each with messages and
 * communicators of its own, or goes on for S seconds. Every received byte and status is checked against the
 * schedule and written to PREFIX.RANK, one line for each, so that the same seed can be compared between plain
 * and sealed runs (test_traffic.py). Promises: S2, M2 to M10. */
#include <pthread.h>

#include "harness.h"
#include "layout.h"
#include "schedule.h"

#if defined(HAVE_ISENDRECV) && !defined(ISENDRECV_FREES_TYPES)
#define EXCHANGE_NONBLOCKING
#endif
enum { BARRIER_EVERY = 8, NEVER_SENT = 30000, MOST_THREADS = 8, BSEND_ROOM = 64 << 20 };

struct started {
    struct message* message;
    struct place place;
    int receives;        /* what completes is a receive */
    struct place second; /* of a non-blocking exchange: what it receives into */
};

struct lane {
    int number;
    pthread_t thread;
    MPI_Comm comms[COMMS];
    struct generator generator;
    long operations, done;
    double until;
    FILE* log;
    struct round round;
    int* next_of_source; /* WILD: index in the list of each source's next message */
    MPI_Request requests[2 * MOST_MESSAGES];
    struct started started[2 * MOST_MESSAGES];
    int count;
};

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;

/* A rank's number in the communicators of schedule.h. */
static int in_comm(int comm, int world) {
    if (comm == 0) return world;
    if (comm == COMM_OF_HALVES) return world / 2;
    return size - 1 - world;
}

static uint64_t seed_for(const struct lane* lane, const struct message* message) {
    return message->id * 64 + (uint64_t)lane->number + 1;
}

static uint64_t hash(const unsigned char* bytes, int n) {
    uint64_t h = 0xcbf29ce484222325u ^ (uint64_t)n, word = 0;
    int i = 0;
    for (; i + 8 <= n; i += 8) {
        memcpy(&word, bytes + i, 8);
        h = (h ^ word) * 0x9e3779b97f4a7c15u;
        h ^= h >> 32;
    }
    word = 0;
    memcpy(&word, bytes + i, (size_t)(n - i));
    return (h ^ word) * 0x9e3779b97f4a7c15u;
}

static void make_outgoing(const struct lane* lane, const struct message* message, struct place* place) {
    unsigned char* content = memory((size_t)message->n);
    fill(content, (size_t)message->n, seed_for(lane, message));
    make_place(place, message->send_layout, message->n);
    put_content(place, content, message->n);
    free(content);
}

/* Checks a received message against the schedule and writes its line. */
static void take(struct lane* lane, const struct message* message, const struct place* place,
                 const MPI_Status* status, const char* how) {
    int count = -1, elements = -1, cancelled = -1, n = message->n;
    OK(MPI_Get_count(status, place->type, &count));
    OK(MPI_Get_elements(status, place->type, &elements));
    OK(MPI_Test_cancelled(status, &cancelled));
    CHECK(status->MPI_SOURCE == in_comm(message->comm, message->source) && status->MPI_TAG == message->tag,
          "lane %d message %llu (%s, %d bytes): the status says source %d tag %d instead of %d and %d",
          lane->number, (unsigned long long)message->id, how, n, status->MPI_SOURCE, status->MPI_TAG,
          in_comm(message->comm, message->source), message->tag);
    unsigned char *content = memory((size_t)n), *expected = memory((size_t)n);
    get_content(place, content, n);
    fill(expected, (size_t)n, seed_for(lane, message));
    CHECK(memcmp(content, expected, (size_t)n) == 0,
          "lane %d message %llu (%s, %d bytes from rank %d, tag %d): other bytes arrived than were sent",
          lane->number, (unsigned long long)message->id, how, n, message->source, message->tag);
    check_gaps(place, n);
    if (lane->log) {
        pthread_mutex_lock(&log_lock);
        fprintf(lane->log, "%d %llu %s %d %d %d %d %d %016llx\n", lane->number,
                (unsigned long long)message->id, how, status->MPI_SOURCE, status->MPI_TAG, count, elements,
                cancelled, (unsigned long long)hash(content, n));
        pthread_mutex_unlock(&log_lock);
    }
    free(content), free(expected);
}

/* Of a receive from anyone: the message that its status says it is. */
static struct message* matched(struct lane* lane, struct message* message, const MPI_Status* status) {
    if (lane->round.kind != WILD) return message;
    int source = in_comm(message->comm, status->MPI_SOURCE); /* the map is its own inverse */
    CHECK(source >= 0 && source < size, "the status of a receive from anyone says source %d",
          status->MPI_SOURCE);
    int* at = &lane->next_of_source[source];
    for (; *at < lane->round.count; ++*at) {
        struct message* candidate = &lane->round.messages[*at];
        if (candidate->source == source && candidate->destination == rank) {
            ++*at;
            return candidate;
        }
    }
    fail(__FILE__, __LINE__, "lane %d: rank %d sent one message fewer than arrived", lane->number, source);
}

static int most_bytes(const struct lane* lane, const struct message* message) {
    if (lane->round.kind != WILD) return message->n + message->slack;
    int most = 0;
    for (int i = 0; i < lane->round.count; ++i)
        if (lane->round.messages[i].n > most) most = lane->round.messages[i].n;
    return most;
}

static int receive_tag(const struct lane* lane, const struct message* message) {
    return lane->round.kind == ANY_TAGS || lane->round.kind == WILD ? MPI_ANY_TAG : message->tag;
}
static int receive_source(const struct lane* lane, const struct message* message) {
    return lane->round.kind == WILD ? MPI_ANY_SOURCE : in_comm(message->comm, message->source);
}

/* --- phase A --- */

static void cancel_one(int source, MPI_Comm comm) {
    MPI_Request request;
    MPI_Status status;
    int nothing, cancelled = 0;
    OK(MPI_Irecv(&nothing, 1, MPI_INT, source, NEVER_SENT, comm, &request));
    OK(MPI_Cancel(&request));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Test_cancelled(&status, &cancelled));
    CHECK(cancelled, "a receive whose message is never sent was not cancelled");
}

static void start_receive(struct lane* lane, struct message* message) {
    struct started* it = &lane->started[lane->count];
    MPI_Request* request = &lane->requests[lane->count++];
    int source = receive_source(lane, message), tag = receive_tag(lane, message);
    MPI_Comm comm = lane->comms[message->comm];
    *it = (struct started){.message = message, .receives = 1};
    make_place(&it->place, message->receive_layout, most_bytes(lane, message));
    if (message->receive == IRECV_AFTER_CANCELLED) cancel_one(source, comm);
    if (message->receive == RECV_INIT) {
        OK(MPI_Recv_init(it->place.buffer, it->place.count, it->place.type, source, tag, comm, request));
        OK(MPI_Start(request));
    } else {
        OK(MPI_Irecv(it->place.buffer, it->place.count, it->place.type, source, tag, comm, request));
    }
}

/* --- phase B --- */

static void start_send(struct lane* lane, struct message* message) {
    struct started* it = &lane->started[lane->count];
    MPI_Request* request = &lane->requests[lane->count++];
    MPI_Comm comm = lane->comms[message->comm];
    *it = (struct started){.message = message};
    make_outgoing(lane, message, &it->place);
    const void* buffer = it->place.buffer;
    int count = it->place.count, to = in_comm(message->comm, message->destination), tag = message->tag;
    MPI_Datatype type = it->place.type;
    *request = MPI_REQUEST_NULL;
    switch (message->send) {
        case ISEND:
            OK(MPI_Isend(buffer, count, type, to, tag, comm, request));
            break;
        case ISSEND:
            OK(MPI_Issend(buffer, count, type, to, tag, comm, request));
            break;
        case SEND_INIT:
            OK(MPI_Send_init(buffer, count, type, to, tag, comm, request));
            break;
        case SSEND_INIT:
            OK(MPI_Ssend_init(buffer, count, type, to, tag, comm, request));
            break;
        case BSEND:
            OK(MPI_Bsend(buffer, count, type, to, tag, comm));
            break;
        case IBSEND:
            OK(MPI_Ibsend(buffer, count, type, to, tag, comm, request));
            break;
        case BSEND_INIT:
            OK(MPI_Bsend_init(buffer, count, type, to, tag, comm, request));
            break;
        case RSEND:
            OK(MPI_Rsend(buffer, count, type, to, tag, comm));
            break;
        case IRSEND:
            OK(MPI_Irsend(buffer, count, type, to, tag, comm, request));
            break;
        default:
            OK(MPI_Rsend_init(buffer, count, type, to, tag, comm, request));
            break;
    }
    int persistent = message->send == SEND_INIT || message->send == SSEND_INIT ||
                     message->send == BSEND_INIT || message->send == RSEND_INIT;
    if (persistent) OK(MPI_Start(request));
}

#ifdef EXCHANGE_NONBLOCKING
static void start_exchange(struct lane* lane, struct message* message, struct message* back) {
    struct started* it = &lane->started[lane->count];
    MPI_Request* request = &lane->requests[lane->count++];
    int to = in_comm(message->comm, message->destination);
    *it = (struct started){.message = back, .receives = 1};
    make_outgoing(lane, message, &it->second);
    make_place(&it->place, back->receive_layout, back->n + back->slack);
    OK(MPI_Isendrecv(it->second.buffer, it->second.count, it->second.type, to, message->tag, it->place.buffer,
                     it->place.count, it->place.type, to, back->tag, lane->comms[message->comm], request));
}
#endif

/* --- phase C --- */

static void send_blocking(struct lane* lane, struct message* message) {
    struct place place;
    make_outgoing(lane, message, &place);
    int to = in_comm(message->comm, message->destination);
    MPI_Comm comm = lane->comms[message->comm];
    if (message->send == SEND)
        OK(MPI_Send(place.buffer, place.count, place.type, to, message->tag, comm));
    else
        OK(MPI_Ssend(place.buffer, place.count, place.type, to, message->tag, comm));
    memset(place.buffer, 0xEE, place.room);
    free_place(&place);
}

static void check_probe(struct lane* lane, const MPI_Status* probed, const MPI_Status* status) {
    int probed_bytes = -1, bytes = -2;
    OK(MPI_Get_elements(probed, MPI_BYTE, &probed_bytes));
    OK(MPI_Get_elements(status, MPI_BYTE, &bytes));
    CHECK(probed->MPI_SOURCE == status->MPI_SOURCE && probed->MPI_TAG == status->MPI_TAG &&
              probed_bytes == bytes,
          "lane %d: the probe said source %d tag %d %d bytes, then came %d, %d, %d", lane->number,
          probed->MPI_SOURCE, probed->MPI_TAG, probed_bytes, status->MPI_SOURCE, status->MPI_TAG, bytes);
}

static void receive_blocking(struct lane* lane, struct message* message) {
    struct place place;
    make_place(&place, message->receive_layout, most_bytes(lane, message));
    int source = receive_source(lane, message), tag = receive_tag(lane, message), flag = 0;
    MPI_Comm comm = lane->comms[message->comm];
    MPI_Status status, probed;
    MPI_Message handle;
    MPI_Request request;
    int how = message->receive;
    if (how == PROBE_RECV) OK(MPI_Probe(source, tag, comm, &probed));
    while (how == IPROBE_RECV && !flag) OK(MPI_Iprobe(source, tag, comm, &flag, &probed));
    if (how == MPROBE_MRECV || how == MPROBE_IMRECV) OK(MPI_Mprobe(source, tag, comm, &handle, &probed));
    while (how == IMPROBE_MRECV && !flag) OK(MPI_Improbe(source, tag, comm, &flag, &handle, &probed));
    if (how == PROBE_RECV || how == IPROBE_RECV) source = probed.MPI_SOURCE, tag = probed.MPI_TAG;
    if (how == MPROBE_MRECV || how == IMPROBE_MRECV) {
        OK(MPI_Mrecv(place.buffer, place.count, place.type, &handle, &status));
    } else if (how == MPROBE_IMRECV) {
        OK(MPI_Imrecv(place.buffer, place.count, place.type, &handle, &request));
        OK(MPI_Wait(&request, &status));
    } else {
        OK(MPI_Recv(place.buffer, place.count, place.type, source, tag, comm, &status));
    }
    if (how != RECV) check_probe(lane, &probed, &status);
    take(lane, matched(lane, message, &status), &place, &status, how == RECV ? "received" : "probed");
    free_place(&place);
}

static void exchange_blocking(struct lane* lane, struct message* message, struct message* back) {
    struct place out, in;
    MPI_Status status;
    int to = in_comm(message->comm, message->destination);
    MPI_Comm comm = lane->comms[message->comm];
    make_outgoing(lane, message, &out);
    if (message->send == SENDRECV_REPLACE) {
        OK(MPI_Sendrecv_replace(out.buffer, out.count, out.type, to, message->tag, to, back->tag, comm,
                                &status));
        take(lane, back, &out, &status, "replaced");
    } else {
        make_place(&in, back->receive_layout, back->n + back->slack);
        OK(MPI_Sendrecv(out.buffer, out.count, out.type, to, message->tag, in.buffer, in.count, in.type, to,
                        back->tag, comm, &status));
        take(lane, back, &in, &status, "exchanged");
        free_place(&in);
    }
    free_place(&out);
}

/* --- phase D --- */

static void finish(struct lane* lane, int i, const MPI_Status* status) {
    struct started* it = &lane->started[i];
    CHECK(it->place.buffer, "lane %d: request %d completed twice", lane->number, i);
    if (it->receives) {
        MPI_Status expected = *status;
        if (it->second.buffer && ISENDRECV_STATUS_EMPTY) {
            expected.MPI_SOURCE = in_comm(it->message->comm, it->message->source);
            expected.MPI_TAG = it->message->tag;
            MPI_Status_set_elements(&expected, MPI_BYTE, it->message->n);
            status = &expected;
        }
        take(lane, matched(lane, it->message, status), &it->place, status, "completed");
    }
    if (lane->requests[i] != MPI_REQUEST_NULL) OK(MPI_Request_free(&lane->requests[i])); /* persistent */
    if (it->second.buffer) free_place(&it->second);
    free_place(&it->place);
}

/* Receives from anyone are told apart by the order of posting: their statuses are looked at in that order, at
 * the end. */
static void complete(struct lane* lane) {
    static const MPI_Status nothing;
    MPI_Status statuses[2 * MOST_MESSAGES];
    int indices[2 * MOST_MESSAGES], count = lane->count, left = count, done, flag = 0,
                                    how = lane->round.completion % 9;
    MPI_Request* requests = lane->requests;
    for (int i = 0; i < count; ++i) {
        statuses[i] = nothing;
        if (requests[i] == MPI_REQUEST_NULL) --left; /* a buffered or ready send that is done */
    }
    if (how == 0) OK(MPI_Waitall(count, requests, statuses));
    while (how == 1 && !flag) OK(MPI_Testall(count, requests, &flag, statuses));
    while ((how == 2 || how == 3) && left > 0) {
        MPI_Status status;
        flag = 1;
        if (how == 2) OK(MPI_Waitany(count, requests, &indices[0], &status));
        if (how == 3) OK(MPI_Testany(count, requests, &indices[0], &flag, &status));
        if (!flag) continue;
        CHECK(indices[0] != MPI_UNDEFINED, "lane %d: no request is active, %d have not completed",
              lane->number, left);
        statuses[indices[0]] = status;
        --left;
    }
    while ((how == 4 || how == 5) && left > 0) {
        MPI_Status some[2 * MOST_MESSAGES];
        if (how == 4) OK(MPI_Waitsome(count, requests, &done, indices, some));
        if (how == 5) OK(MPI_Testsome(count, requests, &done, indices, some));
        CHECK(done != MPI_UNDEFINED, "lane %d: no request is active, %d have not completed", lane->number,
              left);
        for (int i = 0; i < done; ++i) statuses[indices[i]] = some[i];
        left -= done;
    }
    for (int k = 0; how >= 6 && k < count; ++k) {
        int i = (int)(((unsigned)k * 37 + (unsigned)lane->round.completion) %
                      (unsigned)count); /* a permutation, mostly */
        if (count % 37 == 0) i = k;
        flag = 0;
        while (how == 7 && !flag) OK(MPI_Test(&requests[i], &flag, &statuses[i]));
        while (how == 8 && !flag) OK(MPI_Request_get_status(requests[i], &flag, &statuses[i]));
        if (how == 6) OK(MPI_Wait(&requests[i], &statuses[i]));
        if (how == 8) OK(MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
    }
    for (int i = 0; i < count; ++i) finish(lane, i, &statuses[i]);
}

/* --- rounds --- */

static void start_all(struct lane* lane) {
    struct round* round = &lane->round;
    for (int i = 0; i < round->count; ++i) {
        struct message* message = &round->messages[i];
        if (message->destination == rank && message->receive >= FIRST_NONBLOCKING_RECEIVE)
            start_receive(lane, message);
    }
    if (round->kind == READY) OK(MPI_Barrier(lane->comms[0]));
    for (int i = 0; i < round->count; ++i) {
        struct message* message = &round->messages[i];
        if (message->source == rank && message->send >= FIRST_NONBLOCKING_SEND) start_send(lane, message);
    }
}

static void run_mixture(struct lane* lane) {
    struct round* round = &lane->round;
    start_all(lane);
    for (int i = 0; i < round->count; ++i) {
        struct message* message = &round->messages[i];
        if (message->source == rank && message->send < FIRST_NONBLOCKING_SEND) send_blocking(lane, message);
        if (message->destination == rank && message->receive < FIRST_NONBLOCKING_RECEIVE)
            receive_blocking(lane, message);
    }
    complete(lane);
}

static void run_exchanges(struct lane* lane) {
    struct round* round = &lane->round;
    for (int blocking = 0; blocking < 2; ++blocking) {
        for (int i = 0; i < round->count; i += 2) {
            struct message *there = &round->messages[i], *back = &round->messages[i + 1];
            if (there->source != rank && there->destination != rank) continue;
            if (there->source == there->destination) back = there;
            struct message *mine = there->source == rank ? there : back,
                           *other = there->source == rank ? back : there;
#ifdef EXCHANGE_NONBLOCKING
            if ((mine->send == ISENDRECV) == blocking) continue;
            if (mine->send == ISENDRECV) {
                start_exchange(lane, mine, other);
                continue;
            }
#else
            if (!blocking) continue;
#endif
            exchange_blocking(lane, mine, other);
        }
    }
    complete(lane);
}

static int go_on(struct lane* lane) {
    int more = lane->until > 0 ? now() < lane->until : lane->done < lane->operations;
    OK(MPI_Bcast(&more, 1, MPI_INT, 0, lane->comms[0])); /* rank 0's clock decides */
    OK(MPI_Barrier(lane->comms[0]));
    return more;
}

static void* run_lane(void* argument) {
    struct lane* lane = argument;
    lane->next_of_source = memory((size_t)size * sizeof(int));
    for (long round = 0;; ++round) {
        if (round % BARRIER_EVERY == 0 && !go_on(lane)) break;
        next_round(&lane->generator, size, &lane->round);
        memset(lane->next_of_source, 0, (size_t)size * sizeof(int));
        lane->count = 0;
        if (lane->round.kind == EXCHANGES)
            run_exchanges(lane);
        else
            run_mixture(lane);
        if (lane->round.kind == WILD)
            OK(MPI_Barrier(lane->comms[0])); /* the next round's messages must not be taken for this one's */
        lane->done += lane->round.count;
    }
    free(lane->next_of_source);
    return NULL;
}

/* --- the program --- */

static void make_comms(struct lane* lane) {
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &lane->comms[0]));
    OK(MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &lane->comms[1]));
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &lane->comms[COMM_OF_HALVES]));
    OK(MPI_Comm_dup(lane->comms[1], &lane->comms[3]));
}

static const char* option(int argc, char** argv, const char* name, const char* otherwise) {
    for (int i = 1; i + 1 < argc; ++i)
        if (strcmp(argv[i], name) == 0) return argv[i + 1];
    return otherwise;
}

int main(int argc, char** argv) {
    uint64_t seed = strtoull(option(argc, argv, "--seed", "1"), NULL, 10);
    long operations = atol(option(argc, argv, "--operations", "1000"));
    double seconds = atof(option(argc, argv, "--seconds", "0"));
    int threads = atoi(option(argc, argv, "--threads", "1"));
    const char* prefix = option(argc, argv, "--log", NULL);
    MPI_Init_thread(&argc, &argv, threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &threads_given);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    CHECK(threads >= 1 && threads <= MOST_THREADS, "--threads takes 1 to %d", MOST_THREADS);
    FILE* log = NULL;
    if (prefix) {
        char name[4096];
        snprintf(name, sizeof name, "%s.%d", prefix, rank);
        log = fopen(name, "w");
        CHECK(log, "cannot write %s", name);
    }
    void* attached = memory((size_t)BSEND_ROOM * (size_t)threads);
    int room = BSEND_ROOM * threads;
    OK(MPI_Buffer_attach(attached, room));
    struct lane* lanes = calloc((size_t)threads, sizeof *lanes);
    long done = 0;
    for (int i = 0; i < threads; ++i) {
        lanes[i].number = i, lanes[i].log = log, lanes[i].operations = operations / threads;
        lanes[i].until = seconds > 0 ? now() + seconds : 0;
        lanes[i].generator.state = seed * 1000003u + (uint64_t)i;
        make_comms(&lanes[i]);
    }
    for (int i = 1; i < threads; ++i)
        CHECK(pthread_create(&lanes[i].thread, NULL, run_lane, &lanes[i]) == 0, "no thread");
    run_lane(&lanes[0]);
    for (int i = 1; i < threads; ++i) pthread_join(lanes[i].thread, NULL);
    for (int i = 0; i < threads; ++i) {
        done += lanes[i].done;
        for (int c = 0; c < COMMS; ++c) OK(MPI_Comm_free(&lanes[i].comms[c]));
    }
    OK(MPI_Buffer_detach(&attached, &room));
    free(attached), free(lanes);
    if (log) fclose(log);
    if (rank == 0)
        printf("traffic: %ld operations done, seed %llu\n", done, (unsigned long long)seed), fflush(stdout);
    MPI_Barrier(
        MPI_COMM_WORLD); /* and a moment: MPICH 4.0.2 may hang in MPI_Finalize otherwise (docs/lab.md) */
    sleep_seconds(0.02);
    MPI_Finalize();
    return 0;
}
