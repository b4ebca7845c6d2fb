/* M6: MPI_Cancel of receives. A receive that nothing matched is cancelled and says so; the message that comes
 * later goes to the next receive; a receive that had matched completes as if nothing had been. */
#include "harness.h"
#include "rules.h"

static int cancel_and_wait(MPI_Request* request, MPI_Status* status) {
    int cancelled = -1;
    OK(MPI_Cancel(request));
    OK(MPI_Wait(request, status));
    OK(MPI_Test_cancelled(status, &cancelled));
    return cancelled;
}

/* Nobody sends until the barrier: the cancellation must succeed. */
static void unmatched(int source, int peer, int n) {
    unsigned char *out = memory((size_t)n), *in = memory((size_t)n), *cancelled_in = memory((size_t)n);
    fill(out, (size_t)n, seed_of(rank, peer, 70, n));
    memset(cancelled_in, 0x77, (size_t)n);
    MPI_Request request, send;
    MPI_Status status;
    OK(MPI_Irecv(cancelled_in, n, MPI_BYTE, source, 70, MPI_COMM_WORLD, &request));
    CHECK(cancel_and_wait(&request, &status), "a receive that nothing matched was not cancelled");
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (peer != rank) {
        OK(MPI_Isend(out, n, MPI_BYTE, peer, 70, MPI_COMM_WORLD, &send));
        OK(MPI_Recv(in, n, MPI_BYTE, peer, 70, MPI_COMM_WORLD, &status));
        OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
        CHECK_STATUS(&status, peer, 70, n);
        CHECK_FILLED(in, (size_t)n, seed_of(peer, rank, 70, n));
    }
    for (int i = 0; i < n; ++i) CHECK(cancelled_in[i] == 0x77, "a cancelled receive wrote to its buffer");
    free(out), free(in), free(cancelled_in);
}

/* The message is on its way or there: either the receive gets it whole or the next one does. */
static void maybe_matched(int peer, int n, int wait_first) {
    unsigned char *out = memory((size_t)n), *in = memory((size_t)n);
    fill(out, (size_t)n, seed_of(rank, peer, 71, n));
    MPI_Request request, send;
    MPI_Status status;
    OK(MPI_Irecv(in, n, MPI_BYTE, peer, 71, MPI_COMM_WORLD, &request));
    OK(MPI_Isend(out, n, MPI_BYTE, peer, 71, MPI_COMM_WORLD, &send));
    if (wait_first) {
        int flag = 0;
        while (!flag) OK(MPI_Request_get_status(request, &flag, &status));
    }
    int cancelled = cancel_and_wait(&request, &status);
    CHECK(!(cancelled && wait_first), "a completed receive was cancelled");
    if (cancelled) OK(MPI_Recv(in, n, MPI_BYTE, peer, 71, MPI_COMM_WORLD, &status));
    CHECK_STATUS(&status, peer, 71, n);
    CHECK_FILLED(in, (size_t)n, seed_of(peer, rank, 71, n));
    OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
    free(out), free(in);
}

/* Of persistent receives the active instance is cancelled, and the next one works. */
static void persistent(int peer) {
    int value = -1, mine = rank;
    MPI_Request request, send;
    MPI_Status status;
    OK(MPI_Recv_init(&value, 1, MPI_INT, peer, 72, MPI_COMM_WORLD, &request));
    OK(MPI_Start(&request));
    CHECK(cancel_and_wait(&request, &status),
          "an active persistent receive that nothing matched was not cancelled");
    CHECK(request != MPI_REQUEST_NULL, "cancelling a persistent request must leave it there");
    OK(MPI_Start(&request));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Isend(&mine, 1, MPI_INT, peer, 72, MPI_COMM_WORLD, &send));
    OK(MPI_Wait(&request, &status));
    CHECK(value == peer, "the persistent receive after a cancelled one got %d from rank %d", value, peer);
    OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
    OK(MPI_Request_free(&request));
}

void rule_cancel(void) {
    for (int i = 0; i < few_count; ++i) {
        for (int round = 1; round<size; round += size> 2 ? size - 2 : 1) {
            int peer = partner_in(round), n = few_sizes[i];
            OK(MPI_Barrier(MPI_COMM_WORLD));
            unmatched(peer, peer, n);
            OK(MPI_Barrier(MPI_COMM_WORLD));
            unmatched(MPI_ANY_SOURCE, peer, n);
            OK(MPI_Barrier(MPI_COMM_WORLD));
            if (peer != rank) maybe_matched(peer, n, 0), maybe_matched(peer, n, 1);
        }
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    persistent(partner_in(size - 1));
}
