/* M2: MPI_ANY_SOURCE may match a plain message of this node or a sealed one of another; the status tells
 * which. Each rank in turn gathers from all others in every way to receive from anyone; from one sender
 * messages come in the order of sending. */
#include <sys/mman.h>

#include "harness.h"
#include "rules.h"

enum { ROUNDS = 3 };
static int size_in(int round, int from, int shape) {
    return shape == 0 ? (from * 7 + round) % 50 : few_sizes[(from + round + shape) % few_count];
}

static void send_all(int root, int shape, int tag) {
    for (int round = 0; round < ROUNDS; ++round) {
        int n = size_in(round, rank, shape);
        unsigned char* out = memory((size_t)n);
        fill(out, (size_t)n, seed_of(rank, root, tag + round, n));
        OK(MPI_Send(out, n, MPI_BYTE, root, tag + round, MPI_COMM_WORLD));
        free(out);
    }
}

static int largest(int shape) {
    return shape == 0 ? 64 : few_sizes[few_count - 1];
}

/* Takes what arrived from anyone with any tag and checks that it is the next of its sender. */
static void note(const unsigned char* in, const MPI_Status* status, int* got, int shape, int tag) {
    int from = status->MPI_SOURCE;
    CHECK(from >= 0 && from < size && from != rank, "the status names source %d", from);
    int round = got[from]++;
    CHECK(round < ROUNDS, "rank %d sent %d messages, one more arrived", from, ROUNDS);
    int n = size_in(round, from, shape);
    CHECK_STATUS(status, from, tag + round, n);
    CHECK_FILLED(in, (size_t)n, seed_of(from, rank, tag + round, n));
}

static void receive_blocking(int shape, int tag, int how) {
    int *got = calloc((size_t)size, sizeof *got), room = largest(shape);
    unsigned char* in = memory((size_t)room);
    for (int i = 0; i < ROUNDS * (size - 1); ++i) {
        MPI_Status status;
        if (how == 0) {
            OK(MPI_Recv(in, room, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
        } else if (how == 1) {
            MPI_Status probed;
            OK(MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &probed));
            int n = -1;
            OK(MPI_Get_count(&probed, MPI_BYTE, &n));
            OK(MPI_Recv(in, n, MPI_BYTE, probed.MPI_SOURCE, probed.MPI_TAG, MPI_COMM_WORLD, &status));
            CHECK_STATUS(&status, probed.MPI_SOURCE, probed.MPI_TAG, n);
        } else {
            MPI_Message message;
            MPI_Status probed;
            int flag = how == 2, n = -1;
            if (flag) OK(MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &message, &probed));
            while (!flag)
                OK(MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &message, &probed));
            OK(MPI_Get_count(&probed, MPI_BYTE, &n));
            if (how == 2) {
                OK(MPI_Mrecv(in, n, MPI_BYTE, &message, &status));
            } else {
                MPI_Request request;
                OK(MPI_Imrecv(in, n, MPI_BYTE, &message, &request));
                OK(MPI_Wait(&request, &status));
            }
            CHECK(message == MPI_MESSAGE_NULL, "a received message's handle must become MPI_MESSAGE_NULL");
            CHECK_STATUS(&status, probed.MPI_SOURCE, probed.MPI_TAG, n);
        }
        note(in, &status, got, shape, tag);
    }
    free(got), free(in);
}

/* Receives posted before anybody sends: they complete in any order among senders, but match in the order of
 * posting. */
static void post_receives(int shape, MPI_Request* requests, unsigned char** in) {
    int room = largest(shape);
    for (int i = 0; i < ROUNDS * (size - 1); ++i) {
        in[i] = memory((size_t)room);
        OK(MPI_Irecv(in[i], room, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[i]));
    }
}

static void receive_posted(int shape, int tag, MPI_Request* requests, unsigned char** in) {
    int count = ROUNDS * (size - 1), *got = calloc((size_t)size, sizeof *got);
    MPI_Status* statuses = memory((size_t)count * sizeof *statuses);
    OK(MPI_Waitall(count, requests, statuses));
    for (int i = 0; i < count; ++i) {
        note(in[i], &statuses[i], got, shape, tag);
        free(in[i]);
    }
    free(got), free(statuses);
}

/* One specific receive among wildcards: each gets its own. */
static void specific_among_wildcards(int root) {
    int peer = root == 0 ? size - 1 : 0, n = THRESHOLD + 1;
    unsigned char *a = memory((size_t)n), *b = memory((size_t)n);
    MPI_Status first, second;
    if (rank == root) {
        MPI_Request requests[2];
        OK(MPI_Irecv(a, n, MPI_BYTE, peer, 7, MPI_COMM_WORLD, &requests[0]));
        OK(MPI_Irecv(b, n, MPI_BYTE, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &requests[1]));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Wait(&requests[1], &second));
        OK(MPI_Wait(&requests[0], &first));
        CHECK_STATUS(&first, peer, 7, n);
        CHECK_STATUS(&second, peer, 7, 5);
        CHECK_FILLED(a, (size_t)n, 1);
        CHECK_FILLED(b, 5, 2);
    } else {
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (rank == peer) {
            fill(a, (size_t)n, 1), fill(b, 5, 2);
            OK(MPI_Send(a, n, MPI_BYTE, root, 7, MPI_COMM_WORLD));
            OK(MPI_Send(b, 5, MPI_BYTE, root, 7, MPI_COMM_WORLD));
        }
    }
    free(a), free(b);
}

/* More room than an int counts in bytes; only the first page is ever used. */
static void into_much_room(void) {
    const int n = 600000000;
    int out[5] = {1, 2, 3, 4, rank}, got = 0;
    int* in = mmap(NULL, (size_t)n * sizeof *in, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(in != MAP_FAILED, "no addresses for %d ints", n);
    for (int from = 1; from < size; ++from) {
        MPI_Request request;
        MPI_Status status;
        if (rank == 0) OK(MPI_Irecv(in, n, MPI_INT, MPI_ANY_SOURCE, 900, MPI_COMM_WORLD, &request));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (rank == from) OK(MPI_Send(out, 5, MPI_INT, 0, 900, MPI_COMM_WORLD));
        if (rank != 0) continue;
        OK(MPI_Wait(&request, &status));
        OK(MPI_Get_count(&status, MPI_INT, &got));
        CHECK(status.MPI_SOURCE == from && got == 5 && in[0] == 1 && in[4] == from,
              "from %d came %d ints, the last %d; said to be from %d", from, got, in[4], status.MPI_SOURCE);
    }
    munmap(in, (size_t)n * sizeof *in);
}

void rule_any_source(void) {
    into_much_room();
    int roots = size <= 4 ? size : 2;
    for (int i = 0; i < roots; ++i) {
        int root = i == 0 ? 0 : size - i;
        for (int shape = 0; shape < 2; ++shape) {
            for (int how = 0; how < 5; ++how) {
                int tag = 1000 + how * 16, count = ROUNDS * (size - 1);
                MPI_Request* requests = memory((size_t)count * sizeof *requests);
                unsigned char** in = memory((size_t)count * sizeof *in);
                if (rank == root && how == 4) post_receives(shape, requests, in);
                OK(MPI_Barrier(MPI_COMM_WORLD));
                if (rank != root)
                    send_all(root, shape, tag);
                else if (how < 4)
                    receive_blocking(shape, tag, how);
                else
                    receive_posted(shape, tag, requests, in);
                free(requests), free(in);
                OK(MPI_Barrier(MPI_COMM_WORLD));
            }
        }
        specific_among_wildcards(root);
    }
}
