/* M3: statuses and counts speak of the plaintext, for every procedure that gives one; a receive buffer that
 * is larger than the message is fine and what is behind the message stays as it was. */
#include "harness.h"
#include "rules.h"

enum { SLACK = 64, WAYS = 11 };

/* Receives one message of n bytes in one of the WAYS. */
static void receive(int way, int peer, int tag, int n, unsigned char* in, MPI_Status* status) {
    MPI_Comm comm = MPI_COMM_WORLD;
    int room = n + SLACK, flag = 0, index = -1, done = 0;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Message message;
    MPI_Status probed;
    if (way >= 1 && way <= 6) OK(MPI_Irecv(in, room, MPI_BYTE, peer, tag, comm, &request));
    switch (way) {
        case 0:
            OK(MPI_Recv(in, room, MPI_BYTE, peer, tag, comm, status));
            break;
        case 1:
            OK(MPI_Wait(&request, status));
            break;
        case 2:
            while (!flag) OK(MPI_Test(&request, &flag, status));
            break;
        case 3:
            OK(MPI_Waitall(1, &request, status));
            break;
        case 4:
            OK(MPI_Waitany(1, &request, &index, status));
            break;
        case 5:
            OK(MPI_Waitsome(1, &request, &done, &index, status));
            break;
        case 6:
            while (!flag) OK(MPI_Request_get_status(request, &flag, status));
            CHECK_STATUS(status, peer, tag, n);
            OK(MPI_Wait(&request, status));
            break;
        case 7:
            OK(MPI_Probe(peer, tag, comm, &probed));
            CHECK_STATUS(&probed, peer, tag, n);
            OK(MPI_Recv(in, room, MPI_BYTE, peer, tag, comm, status));
            break;
        case 8:
            while (!flag) OK(MPI_Iprobe(MPI_ANY_SOURCE, tag, comm, &flag, &probed));
            CHECK_STATUS(&probed, peer, tag, n);
            OK(MPI_Recv(in, room, MPI_BYTE, MPI_ANY_SOURCE, tag, comm, status));
            break;
        case 9:
            OK(MPI_Mprobe(peer, MPI_ANY_TAG, comm, &message, &probed));
            CHECK_STATUS(&probed, peer, tag, n);
            OK(MPI_Mrecv(in, room, MPI_BYTE, &message, status));
            break;
        default:
            while (!flag) OK(MPI_Improbe(peer, tag, comm, &flag, &message, &probed));
            CHECK_STATUS(&probed, peer, tag, n);
            OK(MPI_Imrecv(in, room, MPI_BYTE, &message, &request));
            OK(MPI_Wait(&request, status));
    }
    CHECK(request == MPI_REQUEST_NULL, "a completed request must become MPI_REQUEST_NULL");
}

static void one(int peer, int way, int n, int tag) {
    unsigned char *out = memory((size_t)n), *in = memory((size_t)n + SLACK), guard[SLACK];
    memset(in, 0xA5, (size_t)n + SLACK), memset(guard, 0xA5, SLACK);
    fill(out, (size_t)n, seed_of(rank, peer, tag, n));
    for (int turn = 0; turn < 2; ++turn) {
        if ((rank < peer) == (turn == 0)) {
            OK(MPI_Send(out, n, MPI_BYTE, peer, tag, MPI_COMM_WORLD));
            continue;
        }
        MPI_Status status;
        receive(way, peer, tag, n, in, &status);
        CHECK_STATUS(&status, peer, tag, n);
        CHECK_FILLED(in, (size_t)n, seed_of(peer, rank, tag, n));
        CHECK(memcmp(in + n, guard, SLACK) == 0, "bytes behind a message of %d bytes were changed", n);
    }
    free(out), free(in);
}

/* Counts in units of a datatype: whole ones, MPI_UNDEFINED for parts of one, elements for parts of a
 * structure. */
static void counts_of_types(int peer) {
    int values[10] = {0}, count, elements;
    MPI_Datatype pair;
    OK(MPI_Type_contiguous(3, MPI_INT, &pair));
    OK(MPI_Type_commit(&pair));
    MPI_Status status;
    if (rank < peer) {
        OK(MPI_Send(values, 7, MPI_INT, peer, 1, MPI_COMM_WORLD));
        OK(MPI_Send(values, 6, MPI_BYTE, peer, 2, MPI_COMM_WORLD));
    } else {
        OK(MPI_Probe(peer, 1, MPI_COMM_WORLD, &status));
        OK(MPI_Get_count(&status, MPI_INT, &count));
        CHECK(count == 7, "the probe counts %d integers of 7", count);
        OK(MPI_Recv(values, 3, pair, peer, 1, MPI_COMM_WORLD, &status));
        OK(MPI_Get_count(&status, MPI_INT, &count));
        CHECK(count == 7, "the status counts %d integers of 7", count);
        OK(MPI_Get_count(&status, pair, &count));
        OK(MPI_Get_elements(&status, pair, &elements));
        CHECK(count == MPI_UNDEFINED, "seven integers are no whole number of triples, the status counts %d",
              count);
        CHECK(elements == 7, "the status has %d elements instead of 7", elements);
        OK(MPI_Recv(values, 40, MPI_BYTE, peer, 2, MPI_COMM_WORLD, &status));
        OK(MPI_Get_count(&status, MPI_INT, &count));
        CHECK(count == MPI_UNDEFINED, "six bytes are no whole number of integers, the status counts %d",
              count);
    }
    OK(MPI_Type_free(&pair));
}

/* MPI_Waitall without an error says in each status that there was none: the standard has the field left alone then, but all libraries do it,
 * and programs look at it. */
static void no_errors(int peer) {
    int out = rank, in = -1;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    statuses[0].MPI_ERROR = statuses[1].MPI_ERROR = MPI_ERR_OTHER;
    OK(MPI_Isend(&out, 1, MPI_INT, peer, 3, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Irecv(&in, 1, MPI_INT, peer, 3, MPI_COMM_WORLD, &requests[1]));
    OK(MPI_Waitall(2, requests, statuses));
    for (int i = 0; i < 2; ++i)
        CHECK(statuses[i].MPI_ERROR == MPI_SUCCESS, "MPI_Waitall without an error left error %d in a status",
              statuses[i].MPI_ERROR);
}

/* MPICH and its kin take MPI_DATATYPE_NULL for no data, in messages. */
static void no_type(int peer) {
#ifndef OPEN_MPI
    const MPI_Datatype none = MPI_DATATYPE_NULL;
    MPI_Request requests[4];
    MPI_Status status;
    if (rank < peer) OK(MPI_Send(NULL, 0, none, peer, 4, MPI_COMM_WORLD));
    if (rank > peer) OK(MPI_Recv(NULL, 0, none, peer, 4, MPI_COMM_WORLD, &status));
    OK(MPI_Isend(NULL, 0, none, peer, 5, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Send_init(NULL, 0, none, peer, 6, MPI_COMM_WORLD, &requests[1]));
    OK(MPI_Irecv(NULL, 0, none, peer, 5, MPI_COMM_WORLD, &requests[2]));
    OK(MPI_Recv_init(NULL, 0, none, peer, 6, MPI_COMM_WORLD, &requests[3]));
    OK(MPI_Start(&requests[1]));
    OK(MPI_Start(&requests[3]));
    OK(MPI_Waitall(4, requests, MPI_STATUSES_IGNORE));
    OK(MPI_Request_free(&requests[1]));
    OK(MPI_Request_free(&requests[3]));
    OK(MPI_Sendrecv(NULL, 0, none, peer, 7, NULL, 0, none, peer, 7, MPI_COMM_WORLD, &status));
    CHECK_STATUS(&status, peer, 7, 0);
#else
    (void)peer;
#endif
}

/* Without a status, and with statuses that MPI defines as empty. */
static void empty_statuses(void) {
    MPI_Status status;
    MPI_Request request = MPI_REQUEST_NULL;
    OK(MPI_Wait(&request, &status));
    CHECK_STATUS(&status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0);
    OK(MPI_Recv(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 5, MPI_COMM_WORLD, &status));
    CHECK_STATUS(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    OK(MPI_Probe(MPI_PROC_NULL, 5, MPI_COMM_WORLD, &status));
    CHECK_STATUS(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    int flag = 0, flags[2];
    MPI_Message message;
    OK(MPI_Iprobe(MPI_PROC_NULL, 5, MPI_COMM_WORLD, &flag, &status));
    CHECK(flag, "a probe of MPI_PROC_NULL succeeds at once");
    OK(MPI_Mprobe(MPI_PROC_NULL, 5, MPI_COMM_WORLD, &message, &status));
    CHECK(message == MPI_MESSAGE_NO_PROC, "Mprobe of MPI_PROC_NULL gives MPI_MESSAGE_NO_PROC");
    OK(MPI_Mrecv(NULL, 0, MPI_BYTE, &message, &status));
    CHECK_STATUS(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    OK(MPI_Improbe(MPI_PROC_NULL, 5, MPI_COMM_WORLD, &flags[0], &message, &status));
    OK(MPI_Imrecv(NULL, 0, MPI_BYTE, &message, &request));
    OK(MPI_Wait(&request, &status));
    CHECK_STATUS(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    OK(MPI_Send(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 5, MPI_COMM_WORLD));
    OK(MPI_Iprobe(MPI_ANY_SOURCE, 12345, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
    CHECK(!flag, "nobody sent a message with tag 12345");
}

void rule_status(void) {
    for (int way = 0; way < WAYS; ++way) {
        for (int i = 0; i < few_count; ++i) {
            for (int round = 0; round < size; ++round) {
                if (size > 4 && round != 1 && round != size - 1) continue;
                int peer = partner_in(round);
                if (peer != rank) one(peer, way, few_sizes[i], 1 + (way * size + round) * 8 + i);
            }
        }
    }
    int peer = partner_in(size - 1);
    if (peer != rank) {
        counts_of_types(peer);
        no_errors(peer);
        no_type(peer);
    }
    empty_statuses();
}
