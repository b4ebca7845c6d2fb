/* M9: persistent operations of every mode are started many times, singly and together, with new content each
 * time, and are freed while inactive; their handles stay the same from start to start. */
#include "harness.h"
#include "rules.h"

enum { ROUNDS = 6, MODES = 3, PER_SIZE = MODES + 1 };

struct set {
    MPI_Request requests[64];
    unsigned char* buffers[64];
    int n[64], tag[64], count;
};

static void add(struct set* set, int mode, int n, int peer, int tag) {
    int i = set->count++;
    set->n[i] = n, set->tag[i] = tag;
    set->buffers[i] = memory((size_t)n);
    void* buffer = set->buffers[i];
    MPI_Request* request = &set->requests[i];
    if (mode == 0) OK(MPI_Send_init(buffer, n, MPI_BYTE, peer, tag, MPI_COMM_WORLD, request));
    if (mode == 1) OK(MPI_Ssend_init(buffer, n, MPI_BYTE, peer, tag, MPI_COMM_WORLD, request));
    if (mode == 2) OK(MPI_Bsend_init(buffer, n, MPI_BYTE, peer, tag, MPI_COMM_WORLD, request));
    if (mode == 3)
        OK(MPI_Recv_init(buffer, n, MPI_BYTE, tag % 2 ? MPI_ANY_SOURCE : peer, tag, MPI_COMM_WORLD, request));
}

static void start(struct set* set, int how) {
    if (how % 2) {
        OK(MPI_Startall(set->count, set->requests));
        return;
    }
    for (int i = 0; i < set->count; ++i) OK(MPI_Start(&set->requests[i]));
}

static void complete(struct set* set, int how, MPI_Status* statuses) {
    int flag = 0;
    if (how % 3 == 0) {
        OK(MPI_Waitall(set->count, set->requests, statuses));
    } else if (how % 3 == 1) {
        while (!flag) OK(MPI_Testall(set->count, set->requests, &flag, statuses));
    } else {
        for (int left = set->count; left > 0; --left) {
            int index = -1;
            MPI_Status status;
            OK(MPI_Waitany(set->count, set->requests, &index, &status));
            CHECK(index >= 0 && index < set->count, "MPI_Waitany gave index %d of %d", index, set->count);
            statuses[index] = status;
        }
    }
}

static void release(struct set* set) {
    for (int i = 0; i < set->count; ++i) {
        MPI_Status status;
        OK(MPI_Wait(&set->requests[i], &status)); /* inactive: at once, with an empty status */
        CHECK(status.MPI_SOURCE == MPI_ANY_SOURCE, "an inactive persistent request has an empty status");
        OK(MPI_Request_free(&set->requests[i]));
        CHECK(set->requests[i] == MPI_REQUEST_NULL,
              "MPI_Request_free must set the handle to MPI_REQUEST_NULL");
        free(set->buffers[i]);
    }
}

static void with(int peer) {
    struct set sends = {.count = 0}, receives = {.count = 0};
    int room = 0;
    for (int i = 0; i < few_count; ++i) {
        for (int mode = 0; mode < MODES; ++mode) {
            int tag = 200 + i * MODES + mode;
            if (mode == 2 && few_sizes[i] > 1000 && BSEND_RESTARTS_WRONG && plain_to(peer)) continue;
            add(&sends, mode, few_sizes[i], peer, tag);
            add(&receives, 3, few_sizes[i], peer, tag);
            if (mode == 2) room += few_sizes[i] + MPI_BSEND_OVERHEAD;
        }
    }
    void *attached = memory((size_t)room), *address;
    int length;
    OK(MPI_Buffer_attach(attached, room));
    for (int round = 0; round < ROUNDS; ++round) {
        MPI_Status statuses[64];
        MPI_Request before[64];
        memcpy(before, receives.requests, sizeof before);
        for (int i = 0; i < sends.count; ++i)
            fill(sends.buffers[i], (size_t)sends.n[i], seed_of(rank, peer, sends.tag[i], round));
        start(&receives, round);
        start(&sends, round + 1);
        complete(&receives, round, statuses);
        for (int i = 0; i < receives.count; ++i) {
            CHECK(receives.requests[i] == before[i], "a persistent request's handle changed");
            CHECK_STATUS(&statuses[i], peer, receives.tag[i], receives.n[i]);
            CHECK_FILLED(receives.buffers[i], (size_t)receives.n[i],
                         seed_of(peer, rank, receives.tag[i], round));
        }
        complete(&sends, round + 1, statuses);
        OK(MPI_Buffer_detach(&address, &length));
        OK(MPI_Buffer_attach(attached, room));
    }
    OK(MPI_Buffer_detach(&address, &length));
    release(&sends), release(&receives);
    free(attached);
}

/* A request made and freed without ever being started; and one freed while active. */
static void unusual(int peer) {
    int out = rank, in = -1, token = 0;
    MPI_Request request;
    OK(MPI_Send_init(&out, 1, MPI_INT, peer, 250, MPI_COMM_WORLD, &request));
    OK(MPI_Request_free(&request));
    OK(MPI_Send_init(&out, 1, MPI_INT, peer, 251, MPI_COMM_WORLD, &request));
    OK(MPI_Start(&request));
    OK(MPI_Request_free(&request));
    OK(MPI_Recv(&in, 1, MPI_INT, peer, 251, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(in == peer, "a message whose persistent request was freed arrived wrong");
    OK(MPI_Sendrecv_replace(&token, 1, MPI_INT, peer, 252, peer, 252, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

/* A persistent collective outlives its communicator. (Not plain: Open MPI crashes.) */
#if MPI_VERSION >= 4
static void outlives_communicator(void) {
    MPI_Comm comm;
    MPI_Request request;
    int in = 0;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Allreduce_init(&size, &in, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &request));
    OK(MPI_Comm_free(&comm));
    for (int i = 0; i < 3; ++i) {
        in = 0;
        OK(MPI_Start(&request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        CHECK(in == size * size, "the sum is said to be %d, not %d", in, size * size);
    }
    OK(MPI_Request_free(&request));
}
#endif

/* Started again and again after their communicator was freed, with a new one made meanwhile. */
static void after_communicator(void) {
    MPI_Comm comm, other;
    MPI_Request requests[2];
    long out, in;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Recv_init(&in, 1, MPI_LONG, (rank + 1) % size, 4, comm, &requests[0]));
    OK(MPI_Ssend_init(&out, 1, MPI_LONG, (rank + size - 1) % size, 4, comm, &requests[1]));
    OK(MPI_Comm_free(&comm));
    CHECK(comm == MPI_COMM_NULL, "the handle of a freed communicator is not MPI_COMM_NULL");
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &other));
    for (int i = 0; i < 3; ++i) {
        out = 10 * rank + i, in = -1;
        OK(MPI_Startall(2, requests));
        OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        CHECK(in == 10 * ((rank + 1) % size) + i, "%ld was received", in);
    }
    OK(MPI_Comm_free(&other));
    for (int i = 0; i < 2; ++i) OK(MPI_Request_free(&requests[i]));
}

void rule_persistent(void) {
    after_communicator();
#if MPI_VERSION >= 4
    if (sealed) outlives_communicator();
#endif
    for (int round = 1; round<size; round += size> 2 ? size - 2 : 1) {
        int peer = partner_in(round);
        OK(MPI_Barrier(
            MPI_COMM_WORLD)); /* receives from anyone: one round's messages must not meet another's */
        if (peer == rank) continue;
        with(peer);
        unusual(peer);
    }
}
