/* M5: a blocking call keeps every other started operation moving. Whatever rank A waits in (a barrier, a
 * reduction, a probe, a receive from another rank, a test loop), the large message that it started must get
 * through to a rank B that cannot go on without it. */
#include "harness.h"
#include "rules.h"

enum { BIG = 8 << 20, TAG = 20, NOTICE = 21 };
enum {
    IN_BARRIER,
    IN_ALLREDUCE,
    IN_ALLGATHER,
    IN_IBARRIER,
    IN_RECV,
    IN_PROBE,
    IN_IPROBE,
    IN_TEST_OTHER,
    IN_WAITANY,
    IN_SSEND,
    IN_SENDRECV,
    WAYS
};

static int pair_of_two; /* the other rank */
static MPI_Comm two;    /* the two ranks that talk */

static void together(int way) {
    int both[2];
    MPI_Request request;
    if (way == IN_ALLGATHER) {
        OK(MPI_Allgather(&rank, 1, MPI_INT, both, 1, MPI_INT, two));
    } else {
        OK(MPI_Ibarrier(two, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
}

/* What A does instead of waiting for its message: it ends only after B has finished with the message. */
static void wait_elsewhere(int way) {
    int notice = 0, flag = 0, index = -1;
    MPI_Request request;
    MPI_Status status;
    switch (way) {
        case IN_BARRIER:
            OK(MPI_Barrier(two));
            return;
        case IN_ALLREDUCE:
            OK(MPI_Allreduce(&rank, &notice, 1, MPI_INT, MPI_SUM, two));
            return;
        case IN_ALLGATHER:
        case IN_IBARRIER:
            together(way);
            return;
        case IN_PROBE:
            OK(MPI_Probe(pair_of_two, NOTICE, MPI_COMM_WORLD, &status));
            break;
        case IN_IPROBE:
            while (!flag) OK(MPI_Iprobe(pair_of_two, NOTICE, MPI_COMM_WORLD, &flag, &status));
            break;
        case IN_TEST_OTHER:
            OK(MPI_Irecv(&notice, 1, MPI_INT, pair_of_two, NOTICE, MPI_COMM_WORLD, &request));
            while (!flag) OK(MPI_Test(&request, &flag, &status));
            return;
        case IN_WAITANY:
            OK(MPI_Irecv(&notice, 1, MPI_INT, pair_of_two, NOTICE, MPI_COMM_WORLD, &request));
            OK(MPI_Waitany(1, &request, &index, &status));
            return;
        case IN_SSEND:
            OK(MPI_Ssend(&notice, 1, MPI_INT, pair_of_two, NOTICE, MPI_COMM_WORLD));
            return;
        case IN_SENDRECV:
            OK(MPI_Sendrecv(&rank, 1, MPI_INT, pair_of_two, NOTICE, &notice, 1, MPI_INT, pair_of_two, NOTICE,
                            MPI_COMM_WORLD, &status));
            return;
        default:
            break;
    }
    OK(MPI_Recv(&notice, 1, MPI_INT, pair_of_two, NOTICE, MPI_COMM_WORLD, &status));
}

/* B's side of the same. */
static void let_go(int way) {
    int notice = 0;
    if (way == IN_BARRIER)
        OK(MPI_Barrier(two));
    else if (way == IN_ALLREDUCE)
        OK(MPI_Allreduce(&rank, &notice, 1, MPI_INT, MPI_SUM, two));
    else if (way == IN_ALLGATHER || way == IN_IBARRIER)
        together(way);
    else if (way == IN_SSEND)
        OK(MPI_Recv(&notice, 1, MPI_INT, pair_of_two, NOTICE, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    else if (way == IN_SENDRECV)
        OK(MPI_Sendrecv(&rank, 1, MPI_INT, pair_of_two, NOTICE, &notice, 1, MPI_INT, pair_of_two, NOTICE,
                        MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    else
        OK(MPI_Send(&notice, 1, MPI_INT, pair_of_two, NOTICE, MPI_COMM_WORLD));
}

static void one(int way, int a_receives, int am_a, unsigned char* buffer) {
    MPI_Request request;
    MPI_Status status;
    if (am_a && a_receives) {
        memset(buffer, 0, BIG);
        OK(MPI_Irecv(buffer, BIG, MPI_BYTE, pair_of_two, TAG, MPI_COMM_WORLD, &request));
        wait_elsewhere(way);
        OK(MPI_Wait(&request, &status));
        CHECK_STATUS(&status, pair_of_two, TAG, BIG);
        CHECK_FILLED(buffer, BIG, (uint64_t)way);
    } else if (am_a) {
        fill(buffer, BIG, (uint64_t)way);
        OK(MPI_Isend(buffer, BIG, MPI_BYTE, pair_of_two, TAG, MPI_COMM_WORLD, &request));
        wait_elsewhere(way);
        OK(MPI_Wait(&request, &status));
    } else if (a_receives) {
        fill(buffer, BIG, (uint64_t)way);
        OK(MPI_Send(buffer, BIG, MPI_BYTE, pair_of_two, TAG, MPI_COMM_WORLD));
        let_go(way);
    } else {
        memset(buffer, 0, BIG);
        OK(MPI_Recv(buffer, BIG, MPI_BYTE, pair_of_two, TAG, MPI_COMM_WORLD, &status));
        CHECK_FILLED(buffer, BIG, (uint64_t)way);
        let_go(way);
    }
}

/* Both directions at once, and everyone: a ring of large messages under a barrier of the world. */
static void ring(void) {
    enum { N = 1 << 20 };
    unsigned char *out = memory(N), *in = memory(N);
    MPI_Request requests[2];
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    fill(out, N, (uint64_t)rank);
    OK(MPI_Irecv(in, N, MPI_BYTE, from, TAG, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Isend(out, N, MPI_BYTE, to, TAG, MPI_COMM_WORLD, &requests[1]));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    CHECK_FILLED(in, N, (uint64_t)from);
    free(out), free(in);
}

void rule_progress(void) {
    unsigned char* buffer = memory(BIG);
    int far = size - 1;
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank == 0 || rank == far ? 0 : MPI_UNDEFINED, rank, &two));
    if (two != MPI_COMM_NULL) {
        pair_of_two = rank == 0 ? far : 0;
        for (int way = 0; way < WAYS; ++way)
            for (int turn = 0; turn < 4; ++turn) one(way, turn & 1, (rank == 0) == (turn < 2), buffer);
        OK(MPI_Comm_free(&two));
    }
    free(buffer);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    ring();
}
