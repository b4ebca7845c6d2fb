/* M3: a receive buffer that is too small for the plaintext gives MPI_ERR_TRUNCATE, never a byte behind the
 * buffer, and what comes after works as if nothing had been. */
#include "harness.h"
#include "rules.h"

static void expect_truncation(int code, int n, int room) {
    CHECK(class_of(code) == MPI_ERR_TRUNCATE,
          "%d bytes into a buffer of %d: class %d instead of MPI_ERR_TRUNCATE (%d)", n, room, class_of(code),
          MPI_ERR_TRUNCATE);
}

static void receive_short(int way, int peer, int tag, int n, int room, unsigned char* in) {
    MPI_Request request;
    MPI_Message message;
    MPI_Status status;
    int code;
    if (way == 0) {
        code = MPI_Recv(in, room, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &status);
    } else if (way == 1) {
        OK(MPI_Irecv(in, room, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &request));
        code = MPI_Wait(&request, &status);
    } else if (way == 2) {
        OK(MPI_Mprobe(peer, tag, MPI_COMM_WORLD, &message, &status));
        CHECK_STATUS(&status, peer, tag, n);
        code = MPI_Mrecv(in, room, MPI_BYTE, &message, &status);
    } else {
        OK(MPI_Irecv(in, room, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &request));
        code = MPI_Waitall(1, &request, &status);
        CHECK(class_of(code) == MPI_ERR_IN_STATUS, "MPI_Waitall gives class %d instead of MPI_ERR_IN_STATUS",
              class_of(code));
        code = status.MPI_ERROR;
    }
    expect_truncation(code, n, room);
}

static void one(int peer, int way, int n, int room) {
    unsigned char *out = memory((size_t)n), *in = memory((size_t)n + 1), *before = memory((size_t)n + 1);
    memset(in, 0x5A, (size_t)n + 1), memset(before, 0x5A, (size_t)n + 1);
    fill(out, (size_t)n, 1);
    int next_out = rank, next_in = -1;
    for (int turn = 0; turn < 2; ++turn) {
        if ((rank < peer) == (turn == 0)) {
            OK(MPI_Send(out, n, MPI_BYTE, peer, 9, MPI_COMM_WORLD));
            OK(MPI_Send(&next_out, 1, MPI_INT, peer, 9, MPI_COMM_WORLD));
        } else {
            receive_short(way, peer, 9, n, room, in);
            CHECK(memcmp(in + room, before, (size_t)(n - room)) == 0 ||
                      (OVERRUNS_SHORT_BUFFERS && plain_to(peer)),
                  "%d bytes into a buffer of %d wrote behind it", n, room);
            OK(MPI_Recv(&next_in, 1, MPI_INT, peer, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            CHECK(next_in == peer, "the message after a truncated one is wrong");
        }
    }
    free(out), free(in), free(before);
}

/* Open MPI plain does not notice that a short message to oneself is too long, and Intel MPI does not complete the receive. */
static void from_oneself(int n) {
    const char* same_node = getenv("MPISEC_SAME_NODE");
    const int verified = sealed && !(same_node && strcmp(same_node, "plain") == 0);
    if (library_is("Intel")) return;
    int out[100] = {0}, in[100] = {0};
    MPI_Request request;
    MPI_Status status;
    OK(MPI_Irecv(in, n / 2, MPI_INT, rank, 10, MPI_COMM_WORLD, &request));
    OK(MPI_Send(out, n, MPI_INT, rank, 10, MPI_COMM_WORLD));
    const int code = MPI_Wait(&request, &status);
    if (verified) expect_truncation(code, n, n / 2);
}

void rule_truncation(void) {
    static const int cases[][2] = {{1, 0},
                                   {16, 15},
                                   {1000, 0},
                                   {THRESHOLD, THRESHOLD - 1},
                                   {THRESHOLD + 1, THRESHOLD},
                                   {THRESHOLD + 1, 10},
                                   {THRESHOLD + SEGMENT + 1, THRESHOLD + SEGMENT},
                                   {1 << 20, 0},
                                   {1 << 20, THRESHOLD + SEGMENT / 2}};
    for (int round = 0; round < size; ++round) {
        if (round != 1 && round != size - 1) continue;
        int peer = partner_in(round);
        if (peer == rank || (TRUNCATION_HANGS && !sealed && !is_local(peer))) continue;
        for (int way = 0; way < 4; ++way)
            for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i)
                one(peer, way, cases[i][0], cases[i][1]);
    }
    from_oneself(2);
    from_oneself(100);
}
