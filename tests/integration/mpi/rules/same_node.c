/* M1: ranks on the same node talk straight through MPI, ranks on different nodes sealed, and a program cannot
 * tell one from the other. Every pair of ranks exchanges messages of every size, by every blocking and
 * non-blocking way to send, also with itself and on MPI_COMM_SELF; memory shared on the node stays shared. */
#include "harness.h"
#include "rules.h"

static void exchange(int peer, int n, int tag) {
    unsigned char *out = memory((size_t)n), *in = memory((size_t)n);
    fill(out, (size_t)n, seed_of(rank, peer, tag, n));
    MPI_Status status;
    for (int turn = 0; turn < 2; ++turn) {
        if ((rank < peer) == (turn == 0)) {
            OK(MPI_Send(out, n, MPI_BYTE, peer, tag, MPI_COMM_WORLD));
        } else {
            OK(MPI_Recv(in, n, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &status));
            CHECK_STATUS(&status, peer, tag, n);
            CHECK_FILLED(in, (size_t)n, seed_of(peer, rank, tag, n));
        }
    }
    free(out), free(in);
}

static void with_self(MPI_Comm comm, int me, int n) {
    unsigned char *out = memory((size_t)n), *in = memory((size_t)n);
    fill(out, (size_t)n, (uint64_t)n);
    MPI_Request request;
    MPI_Status status;
    OK(MPI_Irecv(in, n, MPI_BYTE, me, 3, comm, &request));
    OK(MPI_Send(out, n, MPI_BYTE, me, 3, comm));
    OK(MPI_Wait(&request, &status));
    CHECK_STATUS(&status, me, 3, n);
    CHECK_FILLED(in, (size_t)n, (uint64_t)n);
    free(out), free(in);
}

static void shared_memory(void) {
    MPI_Comm node;
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
    int me, ranks;
    MPI_Comm_rank(node, &me), MPI_Comm_size(node, &ranks);
    for (int i = 0; i < few_count; ++i) {
        int n = few_sizes[i], to = (me + 1) % ranks, from = (me + ranks - 1) % ranks;
        unsigned char *out = memory((size_t)n), *in = memory((size_t)n);
        fill(out, (size_t)n, seed_of(me, to, i, n));
        MPI_Status status;
        OK(MPI_Sendrecv(out, n, MPI_BYTE, to, i, in, n, MPI_BYTE, from, i, node, &status));
        CHECK_STATUS(&status, from, i, n);
        CHECK_FILLED(in, (size_t)n, seed_of(from, me, i, n));
        free(out), free(in);
    }
    OK(MPI_Comm_free(&node));
}

void rule_same_node(void) {
    for (int i = 0; i < size_count; ++i) {
        int heavy = sizes[i] > 4 * THRESHOLD;
        for (int round = 0; round < size; ++round) {
            if ((heavy || size > 6) && round != 1 && round != size - 1) continue;
            int peer = partner_in(round);
            if (peer != rank) exchange(peer, sizes[i], 100 + i);
        }
    }
    for (int i = 0; i < few_count; ++i) {
        with_self(MPI_COMM_WORLD, rank, few_sizes[i]);
        with_self(MPI_COMM_SELF, 0, few_sizes[i]);
    }
    shared_memory();
}
