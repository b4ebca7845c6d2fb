/* M6: request handles stay valid and unique until completed; requests of plain and sealed messages, of
 * generalized operations and of inactive and null persistent operations mix in every completion procedure. */
#include "harness.h"
#include "rules.h"

enum { PER_PEER = 3, ANY, SOME, TESTALL, TESTANY, TESTSOME, ALL };

static int query(void* state, MPI_Status* status) {
    MPI_Status_set_elements(status, MPI_BYTE, *(int*)state);
    MPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = 4242;
    status->MPI_TAG = 17;
    return MPI_SUCCESS;
}
static int nothing(void* state) {
    return (void)state, MPI_SUCCESS;
}
static int no_cancel(void* state, int complete) {
    return (void)state, (void)complete, MPI_SUCCESS;
}

struct slot {
    unsigned char* in;
    int source, tag, n;
    int special; /* 1 generalized, 2 to MPI_PROC_NULL, 3 a send, 4 inactive */
};
enum { SLOTS = 256 };
static struct slot slots[SLOTS];
static MPI_Request requests[SLOTS];
static int count, inactive, element_count = 37;

static int length_of(int from, int i) {
    return few_sizes[(from + 2 * i) % few_count];
}

static void add_receives(void) {
    for (int other = 0; other < size; ++other) {
        for (int i = 0; i < PER_PEER; ++i) {
            int n = length_of(other, i);
            slots[count] = (struct slot){memory((size_t)n), other, 30 + i, n, 0};
            OK(MPI_Irecv(slots[count].in, n, MPI_BYTE, other, 30 + i, MPI_COMM_WORLD, &requests[count]));
            ++count;
        }
    }
}

static void add_sends(void) {
    for (int other = 0; other < size; ++other) {
        for (int i = 0; i < PER_PEER; ++i) {
            int n = length_of(rank, i);
            slots[count] = (struct slot){memory((size_t)n), other, 30 + i, n, 3};
            fill(slots[count].in, (size_t)n, seed_of(rank, other, 30 + i, n));
            OK(MPI_Isend(slots[count].in, n, MPI_BYTE, other, 30 + i, MPI_COMM_WORLD, &requests[count]));
            ++count;
        }
    }
}

static void add_specials(void) {
    slots[count] = (struct slot){memory(0), 4242, 17, element_count, 1};
    OK(MPI_Grequest_start(query, nothing, no_cancel, &element_count, &requests[count]));
    OK(MPI_Grequest_complete(requests[count++]));
    slots[count] = (struct slot){memory(0), MPI_PROC_NULL, MPI_ANY_TAG, 0, 2};
    OK(MPI_Irecv(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 3, MPI_COMM_WORLD, &requests[count++]));
    inactive = count++; /* never started: completion procedures pass over it (Intel MPI not, if it is from
                           MPI_PROC_NULL) */
    slots[inactive] = (struct slot){NULL, 0, 0, 0, 4};
    OK(MPI_Recv_init(NULL, 0, MPI_BYTE, rank, 3, MPI_COMM_WORLD, &requests[inactive]));
}

/* Handles of receives and generalized requests are all different. (MPICH gives one handle to all sends that
 * are complete at once.) */
static void check_unique(void) {
    for (int i = 0; i < count; ++i)
        for (int j = 0; j < i; ++j)
            CHECK(requests[i] != requests[j] || slots[i].special > 1 || slots[j].special > 1,
                  "two outstanding requests share one handle");
}

static void finish(int i, const MPI_Status* status) {
    struct slot* slot = &slots[i];
    CHECK(slot->in, "request %d completed twice", i);
    int checked = slot->special != 3 && !(slot->special == 2 && IRECV_FROM_NULL_STATUS_WRONG);
    if (checked) CHECK_STATUS(status, slot->source, slot->tag, slot->n);
    if (slot->special == 0)
        CHECK_FILLED(slot->in, (size_t)slot->n, seed_of(slot->source, rank, slot->tag, slot->n));
    free(slot->in);
    slot->in = NULL;
}

static void complete_any(int test) {
    for (int left = count - 1; left > 0;) {
        int index = MPI_UNDEFINED, flag = 1;
        MPI_Status status;
        if (test)
            OK(MPI_Testany(count, requests, &index, &flag, &status));
        else
            OK(MPI_Waitany(count, requests, &index, &status));
        if (!flag) continue;
        CHECK(index != MPI_UNDEFINED, "no request is active but %d have not completed", left);
        finish(index, &status);
        --left;
    }
}

static void complete_some(int test) {
    static int indices[SLOTS];
    static MPI_Status statuses[SLOTS];
    for (int left = count - 1; left > 0;) {
        int done = 0;
        if (test)
            OK(MPI_Testsome(count, requests, &done, indices, statuses));
        else
            OK(MPI_Waitsome(count, requests, &done, indices, statuses));
        CHECK(done != MPI_UNDEFINED, "no request is active but %d have not completed", left);
        CHECK(test || done > 0, "MPI_Waitsome returned without a completed request");
        for (int i = 0; i < done; ++i) finish(indices[i], &statuses[i]);
        left -= done;
    }
}

static void complete_all(int test) {
    static MPI_Status statuses[SLOTS];
    int flag = !test;
    if (!test) OK(MPI_Waitall(count, requests, statuses));
    while (!flag) OK(MPI_Testall(count, requests, &flag, statuses));
    for (int i = 0; i < count; ++i)
        if (i != inactive) finish(i, &statuses[i]);
}

static void after_completion(void) {
    for (int i = 0; i < count; ++i) {
        if (i == inactive) continue;
        CHECK(requests[i] == MPI_REQUEST_NULL, "request %d was not set to MPI_REQUEST_NULL", i);
    }
    MPI_Status status; /* inactive persistent: empty status, at once */
    OK(MPI_Wait(&requests[inactive], &status));
    CHECK_STATUS(&status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0);
    OK(MPI_Request_free(&requests[inactive]));
    CHECK(requests[inactive] == MPI_REQUEST_NULL, "MPI_Request_free must set the handle to MPI_REQUEST_NULL");
    int index = 0, flag = 0;
    OK(MPI_Waitany(count, requests, &index, MPI_STATUS_IGNORE));
    CHECK(index == MPI_UNDEFINED, "MPI_Waitany over null requests gives MPI_UNDEFINED");
    OK(MPI_Testall(count, requests, &flag, MPI_STATUSES_IGNORE));
    CHECK(flag, "MPI_Testall over null requests is true");
}

static void mixture(int how) {
    count = 0;
    add_receives();
    add_specials();
    add_sends();
    check_unique();
    switch (how) {
        case ANY:
            complete_any(0);
            break;
        case SOME:
            complete_some(0);
            break;
        case TESTALL:
            complete_all(1);
            break;
        case TESTANY:
            complete_any(1);
            break;
        case TESTSOME:
            complete_some(1);
            break;
        default:
            complete_all(0);
            break;
    }
    after_completion();
}

/* Request_free of active requests: the messages still arrive, and the buffers are in use until then. */
static void freed_while_active(int n) {
    int peer = partner_in(size - 1);
    if (peer == rank) return;
    unsigned char *out = memory((size_t)n), *in = memory((size_t)n);
    fill(out, (size_t)n, seed_of(rank, peer, 60, n));
    MPI_Request request;
    OK(MPI_Isend(out, n, MPI_BYTE, peer, 60, MPI_COMM_WORLD, &request));
    OK(MPI_Request_free(&request));
    CHECK(request == MPI_REQUEST_NULL, "MPI_Request_free must set the handle to MPI_REQUEST_NULL");
    OK(MPI_Recv(in, n, MPI_BYTE, peer, 60, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK_FILLED(in, (size_t)n, seed_of(peer, rank, 60, n));
    int token = 0; /* the peer has received: then the buffer is free again */
    OK(MPI_Sendrecv_replace(&token, 1, MPI_INT, peer, 61, peer, 61, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    free(out), free(in);
}

/* What was on the stack is all ones, as a status would have it that nobody fills in. */
static __attribute__((noinline)) void use_stack(void) {
    volatile unsigned char bytes[16384];
    for (size_t i = 0; i < sizeof bytes; ++i) bytes[i] = 0xff;
}

/* A persistent send within the node: MPICH says nothing in its status, which is therefore not to be believed.
 */
static void send_inside_node(int test) {
    int out = 7, in = 0, index = -1, done = 0;
    MPI_Request receive, send;
    MPI_Status status;
    OK(MPI_Irecv(&in, 1, MPI_INT, rank, 81, MPI_COMM_WORLD, &receive));
    OK(MPI_Send_init(&out, 1, MPI_INT, rank, 81, MPI_COMM_WORLD, &send));
    OK(MPI_Start(&send));
    while (test && !done) {
        use_stack();
        OK(MPI_Test(&send, &done, &status));
    }
    use_stack();
    if (!test) OK(MPI_Waitany(1, &send, &index, &status));
    OK(MPI_Wait(&receive, &status));
    CHECK(in == out, "a message to oneself brought %d", in);
    OK(MPI_Request_free(&send));
}

/* Only inactive requests: from another node, and from nobody. */
static void none_active(void) {
    if (library_is("Intel")) return; /* plain: finds a request that was never started */
    int in = 0, index = 0;
    MPI_Request both[2];
    MPI_Status status;
    OK(MPI_Recv_init(&in, 1, MPI_INT, size - 1 - rank, 82, MPI_COMM_WORLD, &both[0]));
    OK(MPI_Recv_init(&in, 1, MPI_INT, MPI_PROC_NULL, 82, MPI_COMM_WORLD, &both[1]));
    memset(&status, 0x22, sizeof status);
    OK(MPI_Waitany(2, both, &index, &status));
    CHECK(index == MPI_UNDEFINED, "MPI_Waitany found request %d, and none was active", index);
    if (sealed) CHECK_STATUS(&status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0); /* MPICH 4 plain leaves it alone */
    for (int i = 0; i < 2; ++i) OK(MPI_Request_free(&both[i]));
}

/* Of hundreds of open receives those end whose messages have come, though the oldest ones have to wait for theirs: until the others have ended.
 * They are tested by themselves and together. */
static void many_open(int peer) {
    enum { MANY = 600, OLDEST = 20, BYTES = 5000, TAG = 1000 };
    static MPI_Request receives[MANY], sends[MANY];
    unsigned char *in = memory((size_t)MANY * BYTES), *out = memory((size_t)MANY * BYTES);
    fill(out, (size_t)MANY * BYTES, seed_of(rank, peer, TAG, MANY));
    for (int i = 0; i < MANY; ++i)
        OK(MPI_Irecv(in + i * BYTES, BYTES, MPI_BYTE, peer, TAG + i, MPI_COMM_WORLD, &receives[i]));
    for (int i = MANY - 1; i >= OLDEST; --i)
        OK(MPI_Isend(out + i * BYTES, BYTES, MPI_BYTE, peer, TAG + i, MPI_COMM_WORLD, &sends[i]));
    for (int i = OLDEST; i < MANY / 2; ++i)
        for (int flag = 0; !flag;) OK(MPI_Test(&receives[i], &flag, MPI_STATUS_IGNORE));
    for (int flag = 0; !flag;) OK(MPI_Testall(MANY / 2, receives + MANY / 2, &flag, MPI_STATUSES_IGNORE));
    OK(MPI_Sendrecv(NULL, 0, MPI_BYTE, peer, TAG - 1, NULL, 0, MPI_BYTE, peer, TAG - 1, MPI_COMM_WORLD,
                    MPI_STATUS_IGNORE));
    for (int i = 0; i < OLDEST; ++i)
        OK(MPI_Isend(out + i * BYTES, BYTES, MPI_BYTE, peer, TAG + i, MPI_COMM_WORLD, &sends[i]));
    OK(MPI_Waitall(OLDEST, receives, MPI_STATUSES_IGNORE));
    OK(MPI_Waitall(MANY, sends, MPI_STATUSES_IGNORE));
    CHECK_FILLED(in, (size_t)MANY * BYTES, seed_of(peer, rank, TAG, MANY));
    free(in), free(out);
}

void rule_requests(void) {
    CHECK(size * PER_PEER * 2 + 8 < SLOTS, "too many ranks for this test");
    for (int how = ANY; how <= ALL; ++how) mixture(how);
    for (int i = 0; i < few_count; ++i) freed_while_active(few_sizes[i]);
    send_inside_node(0);
    send_inside_node(1);
    none_active();
    const int peer = partner_in(size - 1);
    if (peer != rank) many_open(peer);
}
