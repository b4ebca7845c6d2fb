/* M3 M4: which message each receive and each probe gets, against a model. Every rank sends its messages at once, in
 * every mode that does not wait, on two communicators with few tags; its partner receives them in a random way:
 * receives and probes of all kinds for one tag or any, completed in any order, and matched messages that are kept for a
 * while. */
#include "harness.h"
#include "rules.h"

enum { MESSAGES = 24, ROUNDS = 12, COMMS = 2, TAGS = 3, LONGEST = 200000 };
static const int lengths[] = {0, 1, 100, 4000, 4097, 20000, THRESHOLD + 1, LONGEST};
enum action { RECEIVE, START, START_TOO, PROBE, MATCH, LOOK, COMPLETE, TAKE, ACTIONS };

struct message {
    int tag, length, comm;
    int taken;
};
struct pending {
    MPI_Request request;
    MPI_Message matched;
    unsigned char* buffer;
    int of; /* the message that it must get */
};

static MPI_Comm comms[COMMS];
static struct message coming[MESSAGES];
static struct pending started[MESSAGES], kept[MESSAGES];
static int from, starts, keeps;

static int draw(uint64_t* state, int below) {
    *state += 0x9e3779b97f4a7c15u;
    uint64_t z = *state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (int)((z ^ (z >> 31)) % (unsigned)below);
}

/* What `sender` sends in a round: all know it. */
static void list_messages(struct message* list, int sender, int round) {
    uint64_t state = seed_of(sender, sender, round, 5);
    for (int i = 0; i < MESSAGES; ++i)
        list[i] = (struct message){draw(&state, TAGS),
                                   lengths[draw(&state, (int)(sizeof lengths / sizeof *lengths))],
                                   draw(&state, COMMS), 0};
}

static int first_left(int comm, int tag) {
    for (int i = 0; i < MESSAGES; ++i)
        if (!coming[i].taken && coming[i].comm == comm && (tag == MPI_ANY_TAG || tag == coming[i].tag))
            return i;
    return -1;
}

static void check_envelope(const MPI_Status* status, int of) {
    CHECK_STATUS(status, from, coming[of].tag, coming[of].length);
}

static void check_content(const unsigned char* buffer, const MPI_Status* status, int of, int round) {
    check_envelope(status, of);
    CHECK_FILLED(buffer, (size_t)coming[of].length, seed_of(from, of, round, coming[of].length));
}

static void act(enum action action, int round, uint64_t* state) {
    const int comm = draw(state, COMMS), tag = draw(state, 2) ? MPI_ANY_TAG : draw(state, TAGS);
    const int of = first_left(comm, tag), source = draw(state, 2) && size == 2 ? MPI_ANY_SOURCE : from;
    unsigned char* buffer = NULL;
    MPI_Status status;
    int found = 0;
    if (action < COMPLETE && of < 0) return;
    switch (action) {
        case RECEIVE:
            buffer = memory(LONGEST);
            OK(MPI_Recv(buffer, LONGEST, MPI_BYTE, source, tag, comms[comm], &status));
            check_content(buffer, &status, of, round);
            coming[of].taken = 1;
            break;
        case START:
        case START_TOO:
            started[starts] = (struct pending){.buffer = memory(LONGEST), .of = of};
            OK(MPI_Irecv(started[starts].buffer, LONGEST, MPI_BYTE, source, tag, comms[comm],
                         &started[starts].request));
            coming[of].taken = 1;
            ++starts;
            break;
        case PROBE:
            OK(MPI_Probe(source, tag, comms[comm], &status));
            check_envelope(&status, of);
            break;
        case LOOK:
            OK(MPI_Iprobe(source, tag, comms[comm], &found, &status));
            if (found) check_envelope(&status, of);
            break;
        case MATCH:
            kept[keeps].of = of;
            OK(MPI_Mprobe(source, tag, comms[comm], &kept[keeps].matched, &status));
            check_envelope(&status, of);
            coming[of].taken = 1;
            ++keeps;
            break;
        case COMPLETE:
            if (starts == 0) return;
            found = draw(state, starts);
            OK(MPI_Wait(&started[found].request, &status));
            check_content(started[found].buffer, &status, started[found].of, round);
            buffer = started[found].buffer;
            started[found] = started[--starts];
            break;
        default:
            if (keeps == 0) return;
            found = draw(state, keeps);
            buffer = memory(LONGEST);
            OK(MPI_Mrecv(buffer, LONGEST, MPI_BYTE, &kept[found].matched, &status));
            check_content(buffer, &status, kept[found].of, round);
            kept[found] = kept[--keeps];
    }
    free(buffer);
}

static void play(int round, int to) {
    struct message mine[MESSAGES];
    unsigned char* out[MESSAGES];
    MPI_Request sends[MESSAGES];
    uint64_t state = seed_of(rank, to, round, 9);
    list_messages(mine, rank, round);
    list_messages(coming, from, round);
    for (int i = 0; i < MESSAGES; ++i) {
        out[i] = memory((size_t)mine[i].length + 1);
        fill(out[i], (size_t)mine[i].length, seed_of(rank, i, round, mine[i].length));
        if (draw(&state, 6) == 0)
            OK(MPI_Issend(out[i], mine[i].length, MPI_BYTE, to, mine[i].tag, comms[mine[i].comm], &sends[i]));
        else
            OK(MPI_Isend(out[i], mine[i].length, MPI_BYTE, to, mine[i].tag, comms[mine[i].comm], &sends[i]));
    }
    while (first_left(0, MPI_ANY_TAG) >= 0 || first_left(1, MPI_ANY_TAG) >= 0 || starts > 0 || keeps > 0)
        act((enum action)draw(&state, ACTIONS), round, &state);
    OK(MPI_Waitall(MESSAGES, sends, MPI_STATUSES_IGNORE));
    for (int i = 0; i < MESSAGES; ++i) free(out[i]);
}

/* The receive that got the message which a probe has shown is completed after a later one of its tag. */
static void completed_in_another_order(int to) {
    enum { SENT = 3 };
    const int values[SENT] = {10, 20, 30}, tags[SENT] = {1, 0, 1};
    int got[SENT] = {0};
    MPI_Request sends[SENT], receives[2];
    MPI_Status status;
    for (int i = 0; i < SENT; ++i) OK(MPI_Isend(&values[i], 1, MPI_INT, to, tags[i], comms[0], &sends[i]));
    OK(MPI_Probe(from, MPI_ANY_TAG, comms[0], &status));
    CHECK_STATUS(&status, from, 1, (int)sizeof(int));
    OK(MPI_Irecv(&got[0], 1, MPI_INT, from, 1, comms[0], &receives[0]));
    OK(MPI_Irecv(&got[2], 1, MPI_INT, from, 1, comms[0], &receives[1]));
    OK(MPI_Wait(&receives[1], MPI_STATUS_IGNORE));
    OK(MPI_Wait(&receives[0], MPI_STATUS_IGNORE));
    OK(MPI_Recv(&got[1], 1, MPI_INT, from, 0, comms[0], MPI_STATUS_IGNORE));
    CHECK(memcmp(got, values, sizeof got) == 0, "%d %d %d", got[0], got[1], got[2]);
    OK(MPI_Waitall(SENT, sends, MPI_STATUSES_IGNORE));
}

void rule_matching(void) {
    const int distance = size > 1 ? size / 2 : 0, to = (rank + distance) % size;
    from = (rank + size - distance) % size;
    for (int i = 0; i < COMMS; ++i) OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]));
    for (int round = 0; round < ROUNDS; ++round) play(round, to);
    completed_in_another_order(to);
    for (int i = 0; i < COMMS; ++i) OK(MPI_Comm_free(&comms[i]));
}
