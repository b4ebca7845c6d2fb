/* Point-to-point messages in every mode.
 *
 * A step is a list of messages that all members of the communicator know. Each goes through it in phases, so
 * that no step can deadlock, whatever the sizes: the non-blocking receives, the non-blocking sends, then the
 * blocking calls in the order of the list. Receives of a step are posted before anything of a later step is
 * sent to them, so wildcards match within the step. */
#include <sched.h>

#include "program.h"

enum { MOST_MESSAGES = 512 };
struct message {
    int sending, receiving; /* on this rank */
    int from, to, tag, index;
    long units;
};
struct round {
    const struct step* step;
    const struct comm* comm;
    const struct type *send_type, *receive_type;
    struct slot* slot;
    char send[32], receive[32];
    int any_source, any_tag, barriers, count;
    long most_units;
    struct message list[MOST_MESSAGES];
};

static void add(struct round* round, int side, int from, int to) {
    const struct comm* comm = round->comm;
    int sender = (!comm->inter || side == comm->side) && from == comm->rank;
    int receiver = (!comm->inter || side != comm->side) && to == comm->rank;
    for (int k = 0; k < value(round->step, "n", 1) && round->count < MOST_MESSAGES; ++k) {
        struct message* message = &round->list[round->count];
        int tag =
            (int)value(round->step, "tag", 1) + (value(round->step, "same_tag", 0) ? 0 : round->count % 7);
        *message = (struct message){
            sender, receiver, from, to, tag, round->count, entry(round->step, "units", round->count, 1)};
        if (message->units > round->most_units) round->most_units = message->units;
        ++round->count;
    }
}

/* The messages from one group to the other, or within one. */
static void add_pattern(struct round* round, int side, int senders, int receivers) {
    const struct step* step = round->step;
    int a = (int)value(step, "a", 0), b = (int)value(step, "b", 1);
    if (is(step, "pattern", "pair")) {
        add(round, side, a % senders, b % receivers);
    } else if (is(step, "pattern", "gather")) {
        for (int i = 0; i < senders; ++i) add(round, side, i, b % receivers);
    } else if (is(step, "pattern", "scatter")) {
        for (int i = 0; i < receivers; ++i) add(round, side, a % senders, i);
    } else if (is(step, "pattern", "all")) {
        for (int i = 0; i < senders; ++i)
            for (int j = 0; j < receivers; ++j) add(round, side, i, j);
    } else {
        for (int i = 0; i < senders; ++i) add(round, side, i, (i + b) % receivers);
    }
}

static int non_blocking(const char* mode) {
    return mode[0] == 'i' && strcmp(mode, "iprobe") != 0 && strcmp(mode, "improbe") != 0 &&
           strcmp(mode, "imrecv") != 0;
}

static int prepare(struct round* round, const struct step* step) {
    memset(round, 0, sizeof *round);
    round->step = step;
    round->comm = comm_of(step, "comm");
    round->send_type = type_of(step, "stype");
    round->receive_type = type_of(step, "rtype");
    if (!round->comm || !round->send_type || !round->receive_type ||
        round->send_type->class != round->receive_type->class)
        return 0;
    entry_text(step, "send", 0, "isend", round->send);
    entry_text(step, "receive", 0, "irecv", round->receive);
    /* MPICH loses bytes of buffered messages that are of pairs or structures. */
    if (ON_MPICH && strchr(round->send, 'b') && round->send_type->class >= PAIRS)
        strcpy(round->send, "isend");
    round->any_source = (int)value(step, "any_source", 0);
    round->any_tag = (int)value(step, "any_tag", 0);
    const struct comm* comm = round->comm;
    int sizes[2] = {comm->size, comm->inter ? comm->remote : comm->size};
    add_pattern(round, 0, sizes[comm->inter && comm->side], sizes[!(comm->inter && comm->side)]);
    if (comm->inter) add_pattern(round, 1, sizes[!comm->side], sizes[comm->side]);
    round->slot = slot_for(step);
    return round->slot != NULL;
}

static struct pending* outgoing(struct round* round, const struct message* message) {
    struct pending* it = add_pending(round->slot);
    make_buffer(&it->out, round->send_type, message->units / round->send_type->units);
    it->out_seed =
        mix3((uint64_t)value(round->step, "seed", 0), (uint64_t)message->index, (uint64_t)message->from);
    fill_buffer(&it->out, it->out_seed);
    return it;
}

static struct pending* incoming(struct round* round, const struct message* message) {
    struct pending* it = add_pending(round->slot);
    const struct type* type = round->receive_type;
    long units = (round->any_source ? round->most_units : message->units) + value(round->step, "slack", 0);
    make_buffer(&it->in, type, (units + type->units - 1) / type->units);
    it->in_seed =
        mix3((uint64_t)value(round->step, "seed", 0), 77, round->any_source ? 0 : (uint64_t)message->index);
    fill_buffer(&it->in, it->in_seed);
    it->receives = 1;
    it->wild = round->any_source;
    return it;
}

/* The arguments that all procedures of a kind share; with `large` counts where the MPI has them. */
#define OUT(type_of_count)                                                                       \
    it->out.start, (type_of_count)it->out.count, it->out.layout.type, message->to, message->tag, \
        round->comm->comm
#define IN(type_of_count, source, tag) \
    it->in.start, (type_of_count)it->in.count, it->in.layout.type, source, tag, round->comm->comm
#ifdef HAVE_COUNT_VARIANTS
#define EITHER(name, plain, large) (value(round->step, "large", 0) ? OK(name##_c, large) : OK(name, plain))
#else
#define EITHER(name, plain, large) OK(name, plain)
#endif
#define SEND(name) EITHER(name, (OUT(int)), (OUT(MPI_Count)))
#define START(name) EITHER(name, (OUT(int), &it->request), (OUT(MPI_Count), &it->request))

static void send(struct round* round, const struct message* message) {
    struct pending* it = outgoing(round, message);
    const char* mode = round->send;
    if (strcmp(mode, "send") == 0) SEND(MPI_Send);
    if (strcmp(mode, "ssend") == 0) SEND(MPI_Ssend);
    if (strcmp(mode, "bsend") == 0) SEND(MPI_Bsend);
    if (strcmp(mode, "rsend") == 0) SEND(MPI_Rsend);
    if (strcmp(mode, "isend") == 0) START(MPI_Isend);
    if (strcmp(mode, "issend") == 0) START(MPI_Issend);
    if (strcmp(mode, "ibsend") == 0) START(MPI_Ibsend);
    if (strcmp(mode, "irsend") == 0) START(MPI_Irsend);
}

static void make_send(struct round* round, const struct message* message) {
    struct pending* it = outgoing(round, message);
    if (!strstr("send ssend bsend rsend", round->send))
        strcpy(round->send, "send"); /* a step made simpler names none */
    it->ready = strcmp(round->send, "rsend") == 0;
    if (strcmp(round->send, "send") == 0) START(MPI_Send_init);
    if (strcmp(round->send, "ssend") == 0) START(MPI_Ssend_init);
    if (strcmp(round->send, "bsend") == 0) START(MPI_Bsend_init);
    if (strcmp(round->send, "rsend") == 0) START(MPI_Rsend_init);
}

static int find(struct round* round, struct pending* it, int source, int tag, MPI_Message* found) {
    MPI_Comm comm = round->comm->comm;
    int flag = 1, matched = strstr(round->receive, "mprobe") || strcmp(round->receive, "imrecv") == 0;
    if (strcmp(round->receive, "probe") == 0) OK(MPI_Probe, (source, tag, comm, &it->status));
    if (matched && round->receive[1] != 'm') OK(MPI_Mprobe, (source, tag, comm, found, &it->status));
    if (strcmp(round->receive, "iprobe") == 0) do {
            if (OK(MPI_Iprobe, (source, tag, comm, &flag, &it->status)) || !flag) sched_yield();
        } while (!flag);
    if (matched && round->receive[1] == 'm') do {
            if (OK(MPI_Improbe, (source, tag, comm, &flag, found, &it->status)) || !flag) sched_yield();
        } while (!flag);
    say_status(&it->status, &it->in, round->any_source); /* what a wildcard finds is open */
    return matched;
}

static void receive(struct round* round, const struct message* message) {
    struct pending* it = incoming(round, message);
    int source = round->any_source ? MPI_ANY_SOURCE : message->from,
        tag = round->any_tag ? MPI_ANY_TAG : message->tag;
    if (strcmp(round->receive, "irecv") == 0) {
        EITHER(MPI_Irecv, (IN(int, source, tag), &it->request), (IN(MPI_Count, source, tag), &it->request));
        return;
    }
    if (strcmp(round->receive, "recv") != 0) {
        MPI_Message found = MPI_MESSAGE_NULL;
        if (find(round, it, source, tag, &found)) {
            void* at = it->in.start;
            long n = it->in.count;
            MPI_Datatype type = it->in.layout.type;
            if (strcmp(round->receive, "imrecv") == 0)
                EITHER(MPI_Imrecv, (at, (int)n, type, &found, &it->request),
                       (at, n, type, &found, &it->request));
            else
                EITHER(MPI_Mrecv, (at, (int)n, type, &found, &it->status),
                       (at, n, type, &found, &it->status));
            if (found != MPI_MESSAGE_NULL) say(" message is not null");
            return;
        }
        source = it->status.MPI_SOURCE;
        tag = it->status.MPI_TAG;
    }
    EITHER(MPI_Recv, (IN(int, source, tag), &it->status), (IN(MPI_Count, source, tag), &it->status));
}

static void make_receive(struct round* round, const struct message* message) {
    struct pending* it = incoming(round, message);
    int source = round->any_source ? MPI_ANY_SOURCE : message->from,
        tag = round->any_tag ? MPI_ANY_TAG : message->tag;
    EITHER(MPI_Recv_init, (IN(int, source, tag), &it->request), (IN(MPI_Count, source, tag), &it->request));
}

/* ---- p2p */
static size_t buffered_bytes(const struct round* round) {
    size_t bytes = 0;
    for (int i = 0; i < round->count; ++i)
        if (round->list[i].sending)
            bytes += (size_t)(round->list[i].units / round->send_type->units + 1) *
                         (size_t)round->send_type->units * (size_t)round->send_type->unit_size * 2 +
                     MPI_BSEND_OVERHEAD + 1024;
    return bytes;
}

static void pass(struct round* round, int receives, int blocking) {
    for (int i = 0; i < round->count; ++i) {
        const struct message* message = &round->list[i];
        int alone = message->sending && message->receiving && !non_blocking(round->send) &&
                    !non_blocking(round->receive);
        if (alone) continue; /* a blocking send to oneself */
        if (message->sending &&
            (blocking ? !non_blocking(round->send) : !receives && non_blocking(round->send)))
            send(round, message);
        if (message->receiving &&
            (blocking ? !non_blocking(round->receive) : receives && non_blocking(round->receive)))
            receive(round, message);
    }
}

static void run_round(struct round* round) {
    int buffered = strchr(round->send, 'b') != NULL, ready = strstr(round->send, "rsend") != NULL;
    size_t bytes = buffered ? buffered_bytes(round) : 0;
    void *memory = bytes ? get_memory(bytes) : NULL, *back;
    int size_back;
    if (memory) OK(MPI_Buffer_attach, (memory, (int)bytes));
    pass(round, 1, 0);
    if (ready) OK(MPI_Barrier, (round->comm->comm));
    pass(round, 0, 0);
    pass(round, 0, 1);
    settle(round->slot);
    /* Now none of a later step's messages can take the place of one of these. */
    if (round->any_source && round->any_tag) OK(MPI_Barrier, (round->comm->comm));
    if (memory) {
        OK(MPI_Buffer_detach, (&back, &size_back));
        if (back != memory || size_back != (int)bytes) say(" detached another buffer");
        free(memory);
    }
}

static void make_persistent(struct round* round) {
    round->slot->persistent = 1;
    round->slot->active = 0;
    for (int i = 0; i < round->count; ++i)
        if (round->list[i].receiving) make_receive(round, &round->list[i]);
    for (int i = 0; i < round->count; ++i)
        if (round->list[i].sending) make_send(round, &round->list[i]);
}

/* ---- exchanges: send and receive in one call, along a line or around a ring */
static void exchange(struct round* round, int to, int from) {
    const struct step* step = round->step;
    struct message out = {
        1, 0, round->comm->rank, to, (int)value(step, "tag", 1), 0, value(step, "units", 1)};
    struct message* message = &out;
    MPI_Comm comm = round->comm->comm;
    int tag = out.tag, replace = is(step, "mode", "replace") || is(step, "mode", "ireplace");
    if (ON_MPICH && round->send_type->class >= PAIRS)
        replace = 0; /* it fails for pairs and structures, and leaves a message */
    struct pending* it = incoming(round, &out);
    make_buffer(&it->out, round->send_type, out.units / round->send_type->units);
    fill_buffer(&it->out, mix3((uint64_t)value(step, "seed", 0), 5, (uint64_t)round->comm->rank));
    if (replace) fill_buffer(&it->in, mix3((uint64_t)value(step, "seed", 0), 6, (uint64_t)round->comm->rank));
    it->hide = ON_MPICH &&
               (is(step, "mode", "i") || is(step, "mode", "ireplace")); /* MPICH leaves their status empty */
    void* at = it->in.start;
    long n = it->in.count;
    MPI_Datatype type = it->in.layout.type;
#ifdef HAVE_MPI_4
    /* MPICH 4.0 frees derived types too often there, 5.0 sends other bytes of them from
     * MPI_Isendrecv_replace. */
    int bytes_lost = ON_MPICH && (round->send_type >= types + PAIRS || round->receive_type >= types + PAIRS);
    /* MPICH 4.0 crashes there when both ends are MPI_PROC_NULL. */
    if (ON_MPICH == 4 && to == MPI_PROC_NULL && from == MPI_PROC_NULL) bytes_lost = 1;
    if (is(step, "mode", "i") && !bytes_lost) {
        EITHER(MPI_Isendrecv,
               (it->out.start, (int)it->out.count, it->out.layout.type, to, tag, IN(int, from, tag),
                &it->request),
               (it->out.start, it->out.count, it->out.layout.type, to, tag, IN(MPI_Count, from, tag),
                &it->request));
        return;
    }
    if (is(step, "mode", "ireplace") && replace && !bytes_lost) {
        EITHER(MPI_Isendrecv_replace, (at, (int)n, type, to, tag, from, tag, comm, &it->request),
               (at, n, type, to, tag, from, tag, comm, &it->request));
        return;
    }
#endif
    if (replace)
        EITHER(MPI_Sendrecv_replace, (at, (int)n, type, to, tag, from, tag, comm, &it->status),
               (at, n, type, to, tag, from, tag, comm, &it->status));
    else
        EITHER(MPI_Sendrecv,
               (it->out.start, (int)it->out.count, it->out.layout.type, message->to, tag, IN(int, from, tag),
                &it->status),
               (it->out.start, it->out.count, it->out.layout.type, message->to, tag, IN(MPI_Count, from, tag),
                &it->status));
}

static void run_exchange(struct round* round) {
    const struct comm* comm = round->comm;
    int n = comm->size, shift = (int)value(round->step, "b", 1) % n;
    int to = comm->rank + shift, from = comm->rank - shift;
    if (comm->inter && comm->size != comm->remote) {
        say(" skipped");
    } else {
        int line = (int)value(round->step, "line", 0);
        to = to < n ? to : line ? MPI_PROC_NULL : to - n;
        from = from >= 0 ? from : line ? MPI_PROC_NULL : from + n;
        exchange(round, to, from);
    }
    settle(round->slot);
}

/* ---- receives that are never matched */
static void cancel(struct round* round) {
    struct message never = {
        0, 1, round->comm->inter ? 0 : round->comm->rank, 0, (int)value(round->step, "tag", 1), 0, 1};
    struct pending* it = incoming(round, &never);
    int cancelled = 0;
    it->wild = 0;
    OK(MPI_Irecv, (IN(int, round->any_source ? MPI_ANY_SOURCE : never.from, never.tag), &it->request));
    OK(MPI_Cancel, (&it->request));
    OK(MPI_Wait, (&it->request, &it->status));
    OK(MPI_Test_cancelled, (&it->status, &cancelled));
    say(" cancelled=%d", cancelled);
    it->receives = 0;
    settle(round->slot);
}

/* Nothing comes from nobody. */
static void from_nobody(struct round* round) {
    MPI_Comm comm = round->comm->comm;
    MPI_Status status;
    MPI_Message found;
    int flag = 0, n = (int)value(round->step, "units", 1);
    struct message none = {1, 1, MPI_PROC_NULL, MPI_PROC_NULL, 1, 0, n};
    struct pending* it = incoming(round, &none);
    it->wild = 0;
    OK(MPI_Send, (it->in.start, (int)it->in.count, it->in.layout.type, MPI_PROC_NULL, 1, comm));
    OK(MPI_Probe, (MPI_PROC_NULL, 1, comm, &status));
    say_status(&status, &it->in, 0);
    OK(MPI_Improbe, (MPI_PROC_NULL, 1, comm, &flag, &found, &status));
    say(" flag=%d noproc=%d", flag, found == MPI_MESSAGE_NO_PROC);
    OK(MPI_Mrecv, (it->in.start, (int)it->in.count, it->in.layout.type, &found, &status));
    say_status(&status, &it->in, 0);
    OK(MPI_Recv, (IN(int, MPI_PROC_NULL, 1), &it->status));
    settle(round->slot);
}

int message_step(const struct step* step) {
    static const struct {
        const char* verb;
        void (*run)(struct round*);
    } kinds[] = {{"p2p", run_round},
                 {"p2p_init", make_persistent},
                 {"exchange", run_exchange},
                 {"cancel", cancel},
                 {"nobody", from_nobody}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
        if (!verb_is(step, kinds[i].verb)) continue;
        struct round* round = get_memory(sizeof *round);
        if (prepare(round, step))
            kinds[i].run(round);
        else
            say(" skipped");
        free(round);
        return 1;
    }
    return 0;
}
