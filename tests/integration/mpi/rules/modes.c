/* M9: Ssend still means matched, Rsend finds its posted receive, and every mode and form delivers. */
#include "harness.h"
#include "rules.h"

/* A synchronous send is not complete before a receive has matched it, be it small or large. */
static void synchronous(int peer, int n, int sender) {
    unsigned char* buffer = memory((size_t)n);
    MPI_Request request;
    MPI_Status status;
    int flag = 0, token = 0;
    if (sender) {
        fill(buffer, (size_t)n, (uint64_t)n);
        OK(MPI_Issend(buffer, n, MPI_BYTE, peer, 110, MPI_COMM_WORLD, &request));
        double until = now() + 0.02;
        while (now() < until) {
            OK(MPI_Test(&request, &flag, &status));
            CHECK(!flag, "a synchronous send of %d bytes was complete before its receive was posted", n);
        }
        OK(MPI_Send(&token, 1, MPI_INT, peer, 111, MPI_COMM_WORLD));
        OK(MPI_Wait(&request, &status));
        OK(MPI_Ssend(buffer, n, MPI_BYTE, peer, 112, MPI_COMM_WORLD));
    } else {
        OK(MPI_Recv(&token, 1, MPI_INT, peer, 111, MPI_COMM_WORLD, &status));
        for (int tag = 110; tag <= 112; tag += 2) {
            memset(buffer, 0, (size_t)n);
            OK(MPI_Recv(buffer, n, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &status));
            CHECK_STATUS(&status, peer, tag, n);
            CHECK_FILLED(buffer, (size_t)n, (uint64_t)n);
        }
    }
    free(buffer);
}

/* A receive that has been started, and not completed, is enough for a synchronous send. */
static void matched_is_enough(int peer, int sender) {
    int value = 7, token = 0;
    MPI_Request request;
    if (sender) {
        OK(MPI_Recv(&token, 1, MPI_INT, peer, 114, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Ssend(&value, 1, MPI_INT, peer, 113, MPI_COMM_WORLD));
        OK(MPI_Send(&token, 1, MPI_INT, peer, 115, MPI_COMM_WORLD));
    } else {
        OK(MPI_Irecv(&value, 1, MPI_INT, peer, 113, MPI_COMM_WORLD, &request));
        OK(MPI_Send(&token, 1, MPI_INT, peer, 114, MPI_COMM_WORLD));
        OK(MPI_Recv(&token, 1, MPI_INT, peer, 115, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
}

static void ready(int peer, int n, int sender) {
    unsigned char* buffer = memory((size_t)n);
    MPI_Request requests[3];
    MPI_Status statuses[3];
    int token = 0;
    if (sender) {
        fill(buffer, (size_t)n, (uint64_t)n);
        OK(MPI_Recv(&token, 1, MPI_INT, peer, 123, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Rsend(buffer, n, MPI_BYTE, peer, 120, MPI_COMM_WORLD));
        OK(MPI_Irsend(buffer, n, MPI_BYTE, peer, 121, MPI_COMM_WORLD, &requests[0]));
        OK(MPI_Rsend_init(buffer, n, MPI_BYTE, peer, 122, MPI_COMM_WORLD, &requests[1]));
        OK(MPI_Start(&requests[1]));
        OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        OK(MPI_Request_free(&requests[1]));
    } else {
        unsigned char* in[3];
        for (int i = 0; i < 3; ++i) {
            in[i] = memory((size_t)n);
            OK(MPI_Irecv(in[i], n, MPI_BYTE, peer, 120 + i, MPI_COMM_WORLD, &requests[i]));
        }
        OK(MPI_Send(&token, 1, MPI_INT, peer, 123, MPI_COMM_WORLD));
        OK(MPI_Waitall(3, requests, statuses));
        for (int i = 0; i < 3; ++i) {
            CHECK_STATUS(&statuses[i], peer, 120 + i, n);
            CHECK_FILLED(in[i], (size_t)n, (uint64_t)n);
            free(in[i]);
        }
    }
    free(buffer);
}

void rule_modes(void) {
    for (int round = 1; round<size; round += size> 2 ? size - 2 : 1) {
        int peer = partner_in(round);
        if (peer == rank) continue;
        for (int turn = 0; turn < 2; ++turn) {
            int sender = (rank < peer) == (turn == 0);
            for (int i = 0; i < few_count; ++i) {
                synchronous(peer, few_sizes[i], sender);
                ready(peer, few_sizes[i], sender);
            }
            matched_is_enough(peer, sender);
        }
    }
}
