/* M12: the count-as-MPI_Count variants of the point-to-point procedures behave as their small twins, and mix
 * with them. */
#include "harness.h"
#include "rules.h"

#ifndef HAVE_COUNT_VARIANTS
void rule_counts(void) {
    if (rank == 0) printf("counts: this MPI has no _c procedures\n");
}
#else

enum { FORMS = 12 };

static void send(int form, const void* buffer, MPI_Count n, int peer, int tag) {
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Request request = MPI_REQUEST_NULL;
    switch (form) {
        case 0:
            OK(MPI_Send_c(buffer, n, MPI_BYTE, peer, tag, comm));
            break;
        case 1:
            OK(MPI_Ssend_c(buffer, n, MPI_BYTE, peer, tag, comm));
            break;
        case 2:
            OK(MPI_Bsend_c(buffer, n, MPI_BYTE, peer, tag, comm));
            break;
        case 3:
            OK(MPI_Isend_c(buffer, n, MPI_BYTE, peer, tag, comm, &request));
            break;
        case 4:
            OK(MPI_Issend_c(buffer, n, MPI_BYTE, peer, tag, comm, &request));
            break;
        case 5:
            OK(MPI_Ibsend_c(buffer, n, MPI_BYTE, peer, tag, comm, &request));
            break;
        case 6:
            OK(MPI_Send_init_c(buffer, n, MPI_BYTE, peer, tag, comm, &request));
            break;
        case 7:
            OK(MPI_Ssend_init_c(buffer, n, MPI_BYTE, peer, tag, comm, &request));
            break;
        case 8:
            OK(MPI_Bsend_init_c(buffer, n, MPI_BYTE, peer, tag, comm, &request));
            break;
        case 9:
            OK(MPI_Rsend_c(buffer, n, MPI_BYTE, peer, tag, comm));
            break;
        case 10:
            OK(MPI_Irsend_c(buffer, n, MPI_BYTE, peer, tag, comm, &request));
            break;
        default:
            OK(MPI_Rsend_init_c(buffer, n, MPI_BYTE, peer, tag, comm, &request));
            break;
    }
    int persistent = (form >= 6 && form <= 8) || form == 11;
    if (persistent) OK(MPI_Start(&request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    if (persistent) OK(MPI_Request_free(&request));
}

static void sender(int form, int n, int peer) {
    unsigned char* out = memory((size_t)n);
    int token = 0;
    fill(out, (size_t)n, seed_of(rank, peer, form, n));
    OK(MPI_Recv_c(&token, 1, MPI_INT, peer, 501, MPI_COMM_WORLD,
                  MPI_STATUS_IGNORE)); /* the receive is posted */
    send(form, out, n, peer, 500);
    free(out);
}

static void receiver(int form, int n, int peer) {
    unsigned char* in = memory((size_t)n);
    int token = 0, ready = form >= 9;
    MPI_Status status;
    MPI_Request request = MPI_REQUEST_NULL;
    if (ready || form % 4 == 0) OK(MPI_Irecv_c(in, n, MPI_BYTE, peer, 500, MPI_COMM_WORLD, &request));
    OK(MPI_Send_c(&token, 1, MPI_INT, peer, 501, MPI_COMM_WORLD));
    if (request != MPI_REQUEST_NULL) {
        OK(MPI_Wait(&request, &status));
    } else if (form % 4 == 1) {
        OK(MPI_Recv_c(in, n, MPI_BYTE, MPI_ANY_SOURCE, 500, MPI_COMM_WORLD, &status));
    } else if (form % 4 == 2) {
        MPI_Message message;
        OK(MPI_Mprobe(peer, 500, MPI_COMM_WORLD, &message, &status));
        OK(form % 8 == 2 ? MPI_Mrecv_c(in, n, MPI_BYTE, &message, &status)
                         : MPI_Imrecv_c(in, n, MPI_BYTE, &message, &request));
        if (form % 8 != 2) OK(MPI_Wait(&request, &status));
    } else {
        OK(MPI_Recv_init_c(in, n, MPI_BYTE, peer, 500, MPI_COMM_WORLD, &request));
        OK(MPI_Start(&request));
        OK(MPI_Wait(&request, &status));
        OK(MPI_Request_free(&request));
    }
    CHECK_STATUS(&status, peer, 500, n);
    MPI_Count count = -1, elements = -1;
    OK(MPI_Get_count_c(&status, MPI_BYTE, &count));
    OK(MPI_Get_elements_c(&status, MPI_BYTE, &elements));
    CHECK(count == n && elements == n, "the status counts %lld and %lld of %d", (long long)count,
          (long long)elements, n);
    CHECK_FILLED(in, (size_t)n, seed_of(peer, rank, form, n));
    free(in);
}

static void rings(int n) {
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    unsigned char *out = memory((size_t)n), *in = memory((size_t)n);
    MPI_Status status;
    MPI_Request request;
    fill(out, (size_t)n, seed_of(rank, to, 510, n));
    OK(MPI_Sendrecv_c(out, n, MPI_BYTE, to, 510, in, n, MPI_BYTE, from, 510, MPI_COMM_WORLD, &status));
    CHECK_STATUS(&status, from, 510, n);
    CHECK_FILLED(in, (size_t)n, seed_of(from, rank, 510, n));
    OK(MPI_Isendrecv_c(out, n, MPI_BYTE, to, 511, in, n, MPI_BYTE, from, 511, MPI_COMM_WORLD, &request));
    OK(MPI_Wait(&request, &status));
    CHECK_FILLED(in, (size_t)n, seed_of(from, rank, 510, n));
    OK(MPI_Sendrecv_replace_c(in, n, MPI_BYTE, from, 512, to, 512, MPI_COMM_WORLD, &status));
    CHECK_FILLED(in, (size_t)n, seed_of(rank, to, 510, n));
    OK(MPI_Isendrecv_replace_c(out, n, MPI_BYTE, to, 513, from, 513, MPI_COMM_WORLD, &request));
    OK(MPI_Wait(&request, &status));
    CHECK_FILLED(out, (size_t)n, seed_of(from, rank, 510, n));
    free(out), free(in);
}

void rule_counts(void) {
    MPI_Count room = (1 << 20) + MPI_BSEND_OVERHEAD, detached;
    void *attached = memory((size_t)room), *address;
    for (int round = 1; round<size; round += size> 2 ? size - 2 : 1) {
        int peer = partner_in(round);
        if (peer == rank) continue;
        for (int form = 0; form < FORMS; ++form) {
            for (int i = 0; i < few_count; ++i) {
                for (int turn = 0; turn < 2; ++turn) {
                    if ((rank < peer) != (turn == 0)) {
                        receiver(form, few_sizes[i], peer);
                        continue;
                    }
                    OK(MPI_Buffer_attach_c(attached, room));
                    sender(form, few_sizes[i], peer);
                    OK(MPI_Buffer_detach_c(&address, &detached));
                }
            }
        }
    }
    free(attached);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < few_count; ++i) rings(few_sizes[i]);
}
#endif
