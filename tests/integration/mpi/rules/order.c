/* M4, non-overtaking order (MPI standard section 3.5): of two messages of one sender that a receive could
 * match, it gets the one that was sent first, whatever their sizes; receives with other tags may take later
 * ones first. */
#include "harness.h"
#include "rules.h"

enum { MANY = 24 };
static int length_of(int i) {
    return few_sizes[(i * 5 + 2) % few_count];
}

static void send_many(int peer, int tags) {
    MPI_Request requests[MANY];
    unsigned char* out[MANY];
    for (int i = 0; i < MANY; ++i) {
        int n = length_of(i);
        out[i] = memory((size_t)n);
        fill(out[i], (size_t)n, seed_of(rank, peer, i, n));
        OK(MPI_Isend(out[i], n, MPI_BYTE, peer, 50 + i % tags, MPI_COMM_WORLD, &requests[i]));
    }
    OK(MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < MANY; ++i) free(out[i]);
}

static void check_one(const unsigned char* in, const MPI_Status* status, int peer, int i, int tags) {
    CHECK_STATUS(status, peer, 50 + i % tags, length_of(i));
    CHECK_FILLED(in, (size_t)length_of(i), seed_of(peer, rank, i, length_of(i)));
}

/* In the order of sending, blocking, with wildcards. */
static void receive_in_order(int peer, int tags) {
    int room = few_sizes[few_count - 1];
    unsigned char* in = memory((size_t)room);
    for (int i = 0; i < MANY; ++i) {
        MPI_Status status;
        OK(MPI_Recv(in, room, MPI_BYTE, i % 2 ? peer : MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
        check_one(in, &status, peer, i, tags);
    }
    free(in);
}

/* Receives of one tag after the other: messages of a tag come in order, tags out of order. */
static void receive_by_tag(int peer, int tags) {
    int room = few_sizes[few_count - 1];
    unsigned char* in = memory((size_t)room);
    for (int tag = tags - 1; tag >= 0; --tag) {
        for (int i = tag; i < MANY; i += tags) {
            MPI_Status status;
            OK(MPI_Recv(in, room, MPI_BYTE, peer, 50 + tag, MPI_COMM_WORLD, &status));
            check_one(in, &status, peer, i, tags);
        }
    }
    free(in);
}

/* All posted at once and completed from the last to the first. */
static void receive_posted(int peer, int tags) {
    int room = few_sizes[few_count - 1];
    MPI_Request requests[MANY];
    unsigned char* in[MANY];
    for (int i = 0; i < MANY; ++i) {
        in[i] = memory((size_t)room);
        int tag = i % 3 ? 50 + i % tags : MPI_ANY_TAG;
        OK(MPI_Irecv(in[i], room, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &requests[i]));
    }
    for (int i = MANY - 1; i >= 0; --i) {
        MPI_Status status;
        OK(MPI_Wait(&requests[i], &status));
        check_one(in[i], &status, peer, i, tags);
        free(in[i]);
    }
}

/* Many large messages that nobody receives yet must not keep out a later one. (MPICH 5.0 over TCP bears 64
 * unexpected messages of one sender; segments must not use these up.) */
static void many_unreceived(int peer) {
    enum { LARGE = 40, LENGTH = THRESHOLD + 3 * SEGMENT + 1 };
    MPI_Request requests[LARGE];
    unsigned char* all = memory((size_t)LARGE * LENGTH);
    int token = 4711;
    if (rank < peer) {
        for (int i = 0; i < LARGE; ++i) {
            fill(all + (size_t)i * LENGTH, LENGTH, seed_of(rank, peer, i, LENGTH));
            OK(MPI_Isend(all + (size_t)i * LENGTH, LENGTH, MPI_BYTE, peer, 60, MPI_COMM_WORLD, &requests[i]));
        }
        OK(MPI_Send(&token, 1, MPI_INT, peer, 61, MPI_COMM_WORLD));
        OK(MPI_Waitall(LARGE, requests, MPI_STATUSES_IGNORE));
    } else {
        token = 0;
        OK(MPI_Recv(&token, 1, MPI_INT, peer, 61, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(token == 4711, "the token is %d", token);
        for (int i = 0; i < LARGE; ++i) {
            OK(MPI_Recv(all, LENGTH, MPI_BYTE, peer, 60, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            CHECK_FILLED(all, LENGTH, seed_of(peer, rank, i, LENGTH));
        }
    }
    free(all);
}

void rule_order(void) {
    for (int round = 0; round < size; ++round) {
        if (round != 1 && round != size - 1) continue;
        int peer = partner_in(round);
        OK(MPI_Barrier(MPI_COMM_WORLD)); /* wildcards: one round's messages must not meet another's */
        if (peer == rank) continue;
        many_unreceived(peer);
        for (int way = 0; way < 3; ++way) {
            for (int turn = 0; turn < 2; ++turn) {
                if ((rank < peer) == (turn == 0))
                    send_many(peer, way == 2 ? 1 : 4);
                else if (way == 0)
                    receive_in_order(peer, 4);
                else if (way == 1)
                    receive_by_tag(peer, 4);
                else
                    receive_posted(peer, 1);
            }
        }
    }
}
