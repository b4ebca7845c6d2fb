/* M4: a window of large messages that the receiver has matched but does not receive yet: they neither keep
 * the one back that it receives first, nor fill MPI with parts that nobody takes. */
#include "harness.h"
#include "rules.h"

enum { COUNT = 14, LONG = THRESHOLD + 9 * SEGMENT, SHORT = 1000 };

static void send_all(int peer) {
    MPI_Request requests[COUNT];
    unsigned char* out = memory(LONG);
    fill(out, LONG, seed_of(rank, peer, 0, LONG));
    for (int tag = 0; tag < COUNT; ++tag)
        OK(MPI_Isend(out, LONG, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &requests[tag]));
    OK(MPI_Waitall(COUNT, requests, MPI_STATUSES_IGNORE));
    free(out);
}

static void check(const unsigned char* in, int peer, int tag, const MPI_Status* status) {
    CHECK_STATUS(status, peer, tag, LONG);
    CHECK_FILLED(in, LONG, seed_of(peer, rank, 0, LONG));
}

static void matched_in_order_received_in_reverse(int peer, unsigned char* in) {
    MPI_Message messages[COUNT];
    MPI_Status status;
    for (int tag = 0; tag < COUNT; ++tag) OK(MPI_Mprobe(peer, tag, MPI_COMM_WORLD, &messages[tag], &status));
    for (int tag = COUNT - 1; tag >= 0; --tag) {
        OK(MPI_Mrecv(in, LONG, MPI_BYTE, &messages[tag], &status));
        check(in, peer, tag, &status);
    }
}

/* Receives that are too short and not waited for yet. Open MPI itself overruns them: there is room behind. */
static void too_short_before_a_good_one(int peer, unsigned char* in) {
    MPI_Request requests[COUNT];
    MPI_Status status;
    unsigned char* small = memory((size_t)COUNT * LONG);
    for (int tag = 0; tag < COUNT - 1; ++tag)
        OK(MPI_Irecv(small + (size_t)tag * LONG, SHORT, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &requests[tag]));
    OK(MPI_Recv(in, LONG, MPI_BYTE, peer, COUNT - 1, MPI_COMM_WORLD, &status));
    check(in, peer, COUNT - 1, &status);
    for (int tag = 0; tag < COUNT - 1; ++tag) {
        const int found = class_of(MPI_Wait(&requests[tag], &status));
        CHECK(found == MPI_ERR_TRUNCATE, "%d bytes into %d: class %d", LONG, SHORT, found);
    }
    free(small);
}

void rule_windows(void) {
    int peer = partner_in(1);
    if (peer == rank) return;
    unsigned char* in = memory(LONG);
    for (int turn = 0; turn < 4; ++turn) {
        if ((rank < peer) == (turn % 2 == 0))
            send_all(peer);
        else if (turn < 2)
            matched_in_order_received_in_reverse(peer, in);
        else
            too_short_before_a_good_one(peer, in);
    }
    free(in);
}
