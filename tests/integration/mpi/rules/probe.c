/* M4: a probe of a large message takes it out of MPI to open its header; what the program sees must be as if
 * it had not. Later probes and receives find it, and a message that was sent before it is still received
 * before it. */
#include "harness.h"
#include "rules.h"

enum { BIG = THRESHOLD + SEGMENT + 77, OTHER = THRESHOLD + 1 };

static void send(int peer, int tag, int n) {
    unsigned char* out = memory((size_t)n);
    fill(out, (size_t)n, seed_of(rank, peer, tag, n));
    OK(MPI_Send(out, n, MPI_BYTE, peer, tag, MPI_COMM_WORLD));
    free(out);
}

static void receive(int source, int tag, int expected_from, int expected_tag, int n) {
    unsigned char* in = memory(BIG);
    MPI_Status status;
    OK(MPI_Recv(in, BIG, MPI_BYTE, source, tag, MPI_COMM_WORLD, &status));
    CHECK_STATUS(&status, expected_from, expected_tag, n);
    CHECK_FILLED(in, (size_t)n, seed_of(expected_from, rank, expected_tag, n));
    free(in);
}

/* A sender may block in a large send until it is received: all sends go out non-blocking and are waited for
 * at the end. */
static void send_these(int peer, const int (*list)[2], int count) {
    MPI_Request requests[8];
    unsigned char* out[8];
    for (int i = 0; i < count; ++i) {
        int tag = list[i][0], n = list[i][1];
        out[i] = memory((size_t)n);
        fill(out[i], (size_t)n, seed_of(rank, peer, tag, n));
        OK(MPI_Isend(out[i], n, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &requests[i]));
    }
    OK(MPI_Waitall(count, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < count; ++i) free(out[i]);
}

static void probe(int source, int tag, int from, int expected_tag, int n) {
    MPI_Status status;
    OK(MPI_Probe(source, tag, MPI_COMM_WORLD, &status));
    CHECK_STATUS(&status, from, expected_tag, n);
}

/* Tag 4 is sent before the large tag 5. A probe of 5 must not let 5 overtake 4. */
static void tag_four_first(int peer, int n4, int receiver) {
    const int list[][2] = {{4, n4}, {5, BIG}};
    if (!receiver) {
        send_these(peer, list, 2);
        return;
    }
    probe(peer, 5, peer, 5, BIG);
    probe(peer, 5, peer, 5, BIG);
    probe(peer, MPI_ANY_TAG, peer, 4, n4);
    receive(peer, MPI_ANY_TAG, peer, 4, n4);
    probe(peer, MPI_ANY_TAG, peer, 5, BIG);
    receive(peer, MPI_ANY_TAG, peer, 5, BIG);
}

/* Probed, then received by specific tag before the other; and by a posted receive; and by a matched probe. */
static void after_probe(int peer, int way, int receiver) {
    const int list[][2] = {{4, OTHER}, {5, BIG}, {5, 10}, {4, 11}};
    if (!receiver) {
        send_these(peer, list, 4);
        return;
    }
    probe(peer, 5, peer, 5, BIG);
    unsigned char* in = memory(BIG);
    MPI_Status status;
    MPI_Request request;
    MPI_Message message;
    if (way == 0) {
        receive(peer, 5, peer, 5, BIG);
    } else if (way == 1) {
        OK(MPI_Irecv(in, BIG, MPI_BYTE, peer, 5, MPI_COMM_WORLD, &request));
        OK(MPI_Wait(&request, &status));
        CHECK_STATUS(&status, peer, 5, BIG);
        CHECK_FILLED(in, BIG, seed_of(peer, rank, 5, BIG));
    } else {
        OK(MPI_Mprobe(peer, 5, MPI_COMM_WORLD, &message, &status));
        CHECK_STATUS(&status, peer, 5, BIG);
        probe(peer, 5, peer, 5, 10); /* the matched one is no longer there to be found */
        OK(MPI_Mrecv(in, BIG, MPI_BYTE, &message, &status));
        CHECK_STATUS(&status, peer, 5, BIG);
        CHECK_FILLED(in, BIG, seed_of(peer, rank, 5, BIG));
    }
    free(in);
    receive(peer, MPI_ANY_TAG, peer, 4, OTHER);
    receive(peer, MPI_ANY_TAG, peer, 5, 10);
    receive(peer, MPI_ANY_TAG, peer, 4, 11);
}

/* What a probe for any tag shows is received with any tag; the next one of its tag is then received before one sent earlier. With
 * `large` another probe takes a large message out of MPI in between. */
static void after_probe_for_any_tag(int peer, int large, int receiver) {
    const int list[][2] = {{4, 12}, {5, 13}, {4, 14}, {6, large ? BIG : 15}};
    if (!receiver) {
        send_these(peer, list, 4);
        return;
    }
    probe(peer, MPI_ANY_TAG, peer, 4, 12);
    if (large) probe(peer, 6, peer, 6, BIG);
    receive(peer, MPI_ANY_TAG, peer, 4, 12);
    receive(peer, 4, peer, 4, 14);
    receive(peer, MPI_ANY_TAG, peer, 5, 13);
    receive(peer, MPI_ANY_TAG, peer, 6, list[3][1]);
}

/* A matched message may be received long after later ones. */
static void matched_and_kept(int peer, int n, int receiver) {
    const int list[][2] = {{6, n}, {6, 3}, {6, OTHER}};
    if (!receiver) {
        send_these(peer, list, 3);
        return;
    }
    MPI_Message first, second;
    MPI_Status status;
    unsigned char* in = memory(BIG);
    int flag = 0;
    OK(MPI_Mprobe(MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, &first, &status));
    CHECK_STATUS(&status, peer, 6, n);
    while (!flag) OK(MPI_Improbe(peer, 6, MPI_COMM_WORLD, &flag, &second, &status));
    CHECK_STATUS(&status, peer, 6, 3);
    receive(peer, 6, peer, 6, OTHER);
    OK(MPI_Mrecv(in, BIG, MPI_BYTE, &second, &status));
    CHECK_STATUS(&status, peer, 6, 3);
    OK(MPI_Mrecv(in, BIG, MPI_BYTE, &first, &status));
    CHECK_STATUS(&status, peer, 6, n);
    CHECK_FILLED(in, (size_t)n, seed_of(peer, rank, 6, n));
    free(in);
}

/* Everyone sends a large message to rank 0, which probes for any, then receives them in the order of ranks.
 */
static void probe_any_receive_each(void) {
    if (rank != 0) {
        send(0, 8, BIG);
        return;
    }
    for (int i = 0; i < 3; ++i) {
        MPI_Status status;
        OK(MPI_Probe(MPI_ANY_SOURCE, 8, MPI_COMM_WORLD, &status));
        CHECK_STATUS(&status, status.MPI_SOURCE, 8, BIG);
    }
    for (int other = size - 1; other > 0; --other) receive(other, 8, other, 8, BIG);
}

/* However often a receiver probes for any tag, messages stay where they are: nobody has begun to receive them, so synchronous sends are not
 * complete (MPI standard section 3.4). */
static void probed_often(int peer, int receiver) {
    enum { OFTEN = 100, WAITING = 4 };
    int token = 0;
    if (receiver) {
        MPI_Status status;
        probe(peer, 5, peer, 5, BIG);
        for (int i = 0; i < OFTEN; ++i) {
            int flag = 0;
            while (!flag) OK(MPI_Iprobe(peer, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &status));
            CHECK_STATUS(&status, peer, 5, BIG);
        }
        OK(MPI_Send(&token, 1, MPI_INT, peer, 7, MPI_COMM_WORLD));
        OK(MPI_Recv(&token, 1, MPI_INT, peer, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        receive(peer, MPI_ANY_TAG, peer, 5, BIG);
        for (int i = 0; i < WAITING; ++i) receive(peer, MPI_ANY_TAG, peer, 6, 1000 + i);
        return;
    }
    MPI_Request requests[WAITING + 1];
    unsigned char* out[WAITING + 1];
    for (int i = 0; i <= WAITING; ++i) {
        const int n = i == 0 ? BIG : 1000 + i - 1, tag = i == 0 ? 5 : 6;
        out[i] = memory((size_t)n);
        fill(out[i], (size_t)n, seed_of(rank, peer, tag, n));
        if (i == 0)
            OK(MPI_Isend(out[i], n, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &requests[i]));
        else
            OK(MPI_Issend(out[i], n, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &requests[i]));
    }
    OK(MPI_Recv(&token, 1, MPI_INT, peer, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int i = 1; i <= WAITING; ++i) {
        int complete = 0;
        OK(MPI_Request_get_status(requests[i], &complete, MPI_STATUS_IGNORE));
        CHECK(!complete, "a synchronous send was complete before anything received it");
    }
    OK(MPI_Send(&token, 1, MPI_INT, peer, 8, MPI_COMM_WORLD));
    OK(MPI_Waitall(WAITING + 1, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i <= WAITING; ++i) free(out[i]);
}

void rule_probe(void) {
    for (int round = 0; round < size; ++round) {
        if (round != 1 && round != size - 1) continue;
        int peer = partner_in(round);
        OK(MPI_Barrier(MPI_COMM_WORLD)); /* wildcards: one round's messages must not meet another's */
        if (peer == rank) continue;
        for (int turn = 0; turn < 2; ++turn) {
            int receiver = (rank < peer) == (turn == 0);
            tag_four_first(peer, 16, receiver);
            tag_four_first(peer, THRESHOLD, receiver);
            tag_four_first(peer, OTHER, receiver);
            for (int way = 0; way < 3; ++way) after_probe(peer, way, receiver);
            for (int large = 0; large < 2; ++large) after_probe_for_any_tag(peer, large, receiver);
            matched_and_kept(peer, BIG, receiver);
            matched_and_kept(peer, 20, receiver);
            probed_often(peer, receiver);
        }
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    probe_any_receive_each();
}
