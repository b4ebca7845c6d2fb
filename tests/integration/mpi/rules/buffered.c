/* M9: a buffered send needs no more of the attached buffer than plain MPI does: exactly what MPI_Pack_size
 * and MPI_BSEND_OVERHEAD say is enough (rounded up to 8 bytes, the alignment that MPICH gives each message),
 * nothing is written outside the buffer, and MPI_Buffer_detach waits for the messages and gives the buffer
 * back. */
#include "harness.h"
#include "rules.h"

enum { GUARD = 256, COUNT = 4 };

static void send(int form, const void* buffer, int n, int peer, int tag) {
    MPI_Request request;
    if (form == 0) {
        OK(MPI_Bsend(buffer, n, MPI_BYTE, peer, tag, MPI_COMM_WORLD));
    } else if (form == 1) {
        OK(MPI_Ibsend(buffer, n, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    } else {
        OK(MPI_Bsend_init(buffer, n, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &request));
        OK(MPI_Start(&request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        OK(MPI_Request_free(&request));
    }
}

/* Sends COUNT messages before the peer receives any: they must all fit. */
static void exact(int peer, int n, int form, int sender) {
    int packed, token = 0;
    OK(MPI_Pack_size(n, MPI_BYTE, MPI_COMM_WORLD, &packed));
    int room = COUNT * ((packed + 7) / 8 * 8 + MPI_BSEND_OVERHEAD);
    if (sender) {
        unsigned char *memory_block = memory((size_t)room + 2 * GUARD), *attached = memory_block + GUARD,
                      guard[GUARD];
        unsigned char* out = memory((size_t)n);
        memset(memory_block, 0xE7, (size_t)room + 2 * GUARD), memset(guard, 0xE7, GUARD);
        OK(MPI_Buffer_attach(attached, room));
        for (int i = 0; i < COUNT; ++i) {
            fill(out, (size_t)n, (uint64_t)i);
            send(form, out, n, peer, 130 + i);
            memset(out, 0, (size_t)n);
        }
        OK(MPI_Send(&token, 1, MPI_INT, peer, 129, MPI_COMM_WORLD));
        void* address = NULL;
        int length = -1;
        OK(MPI_Buffer_detach(&address, &length));
        CHECK(address == attached && length == room,
              "MPI_Buffer_detach gave back another buffer than was attached");
        CHECK(memcmp(memory_block, guard, GUARD) == 0 && memcmp(attached + room, guard, GUARD) == 0,
              "something was written outside the attached buffer");
        free(memory_block), free(out);
    } else {
        unsigned char* in = memory((size_t)n);
        OK(MPI_Recv(&token, 1, MPI_INT, peer, 129, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        for (int i = COUNT - 1; i >= 0; --i) {
            MPI_Status status;
            OK(MPI_Recv(in, n, MPI_BYTE, peer, 130 + i, MPI_COMM_WORLD, &status));
            CHECK_STATUS(&status, peer, 130 + i, n);
            CHECK_FILLED(in, (size_t)n, (uint64_t)i);
        }
        free(in);
    }
}

/* Derived types, and space that is used again as messages leave. */
static void again(int peer, int sender) {
    enum { N = 2000, ROUNDS = 20 };
    MPI_Datatype type;
    OK(MPI_Type_vector(N, 1, 3, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    int packed, *values = memory(3 * N * sizeof(int));
    OK(MPI_Pack_size(1, type, MPI_COMM_WORLD, &packed));
    int room = packed + MPI_BSEND_OVERHEAD;
    void *attached = memory((size_t)room), *address;
    if (sender) OK(MPI_Buffer_attach(attached, room));
    for (int i = 0; i < ROUNDS; ++i) {
        int token = i;
        for (int j = 0; j < N; ++j) values[3 * j] = sender ? i * N + j : -1;
        if (sender) {
            OK(MPI_Bsend(values, 1, type, peer, 140, MPI_COMM_WORLD));
            OK(MPI_Recv(&token, 1, MPI_INT, peer, 141, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            OK(MPI_Buffer_detach(&address, &packed));
            OK(MPI_Buffer_attach(attached, room));
        } else {
            OK(MPI_Recv(values, 1, type, peer, 140, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            for (int j = 0; j < N; ++j) CHECK(values[3 * j] == i * N + j, "a buffered vector arrived wrong");
            OK(MPI_Send(&token, 1, MPI_INT, peer, 141, MPI_COMM_WORLD));
        }
    }
    if (sender) OK(MPI_Buffer_detach(&address, &packed));
    OK(MPI_Type_free(&type));
    free(attached), free(values);
}

/* Without enough room a buffered send fails with MPI_ERR_BUFFER; nothing is lost or corrupted by that. */
static void too_small(int peer) {
    if (FAILED_BSEND_BLOCKS && plain_to(peer)) return;
    enum { N = 5000 };
    unsigned char *out = memory(N), attached[1000 + MPI_BSEND_OVERHEAD];
    void* address;
    int length;
    OK(MPI_Buffer_attach(attached, sizeof attached));
    int code = MPI_Bsend(out, N, MPI_BYTE, peer, 145, MPI_COMM_WORLD);
    CHECK(class_of(code) == MPI_ERR_BUFFER,
          "a buffered send without room gave class %d instead of MPI_ERR_BUFFER (%d)", class_of(code),
          MPI_ERR_BUFFER);
    OK(MPI_Buffer_detach(&address, &length));
    free(out);
}

#if MPI_VERSION * 100 + MPI_SUBVERSION >= 401
/* A communicator has a buffer of its own, which alone serves it, and whose flush waits for its messages. */
static void of_communicator(MPI_Comm comm, int peer, int n, int sender) {
    int packed, token = 0;
    OK(MPI_Pack_size(n, MPI_BYTE, comm, &packed));
    const int room = COUNT * ((packed + 7) / 8 * 8 + MPI_BSEND_OVERHEAD);
    unsigned char *attached = memory((size_t)room), *message = memory((size_t)n + 64);
    if (sender) {
        MPI_Request request;
        OK(MPI_Comm_attach_buffer(comm, attached, room));
        for (int i = 0; i < COUNT; ++i) {
            fill(message, (size_t)n, (uint64_t)i);
            OK(MPI_Bsend(message, n, MPI_BYTE, peer, 150 + i, comm));
            memset(message, 0, (size_t)n);
        }
        OK(MPI_Buffer_flush()); /* of the process's buffer, which has nothing of this */
        OK(MPI_Send(&token, 1, MPI_INT, peer, 149, comm));
        OK(MPI_Comm_iflush_buffer(comm, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        fill(message, (size_t)n, COUNT);
        OK(MPI_Bsend(message, n, MPI_BYTE, peer, 150 + COUNT, comm));
        OK(MPI_Comm_flush_buffer(comm));
        OK(MPI_Buffer_iflush(&request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        void* address = NULL;
        int length = -1;
        OK(MPI_Comm_detach_buffer(comm, &address, &length));
        CHECK(address == attached && length == room, "MPI_Comm_detach_buffer gave back another buffer");
        CHECK(class_of(MPI_Bsend(message, n, MPI_BYTE, peer, 159, comm)) == MPI_ERR_BUFFER,
              "a buffered send without a buffer did not fail");
    } else {
        OK(MPI_Recv(&token, 1, MPI_INT, peer, 149, comm, MPI_STATUS_IGNORE));
        for (int i = COUNT; i >= 0; --i) {
            const int which = i == COUNT ? 0
                              : i == 0   ? COUNT
                                         : i; /* the last one is sent when the others have left */
            OK(MPI_Recv(message, n, MPI_BYTE, peer, 150 + which, comm, MPI_STATUS_IGNORE));
            CHECK_FILLED(message, (size_t)n, (uint64_t)which);
        }
    }
    free(attached), free(message);
}
#endif

void rule_buffered(void) {
#if MPI_VERSION * 100 + MPI_SUBVERSION >= 401
    MPI_Comm own;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &own));
    const int other = partner_in(size - 1);
    for (int turn = 0; turn < 2 && other != rank; ++turn)
        for (int i = 0; i < few_count; ++i)
            if (!plain_to(other)) of_communicator(own, other, few_sizes[i], (rank < other) == (turn == 0));
    OK(MPI_Comm_free(&own));
#endif
    for (int round = 1; round<size; round += size> 2 ? size - 2 : 1) {
        int peer = partner_in(round);
        if (peer == rank) continue;
        for (int turn = 0; turn < 2; ++turn) {
            int sender = (rank < peer) == (turn == 0);
            for (int form = 0; form < 3; ++form)
                for (int i = 0; i < few_count; ++i) exact(peer, few_sizes[i], form, sender);
            again(peer, sender);
            if (sender) too_small(peer);
        }
    }
}
