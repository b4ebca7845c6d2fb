/* M7: send buffers are never written and are free again at completion. Buffers lie in pages that cannot be
 * written; after completion they are overwritten at once while the message may still be under way; one buffer
 * serves several sends at the same time. */
#define _DEFAULT_SOURCE
#include <sys/mman.h>

#include "harness.h"
#include "rules.h"

enum { PAGE = 4096, MODES = 8 };

static unsigned char* read_only(int n, uint64_t seed, size_t* length) {
    *length = ((size_t)n + PAGE) / PAGE * PAGE;
    unsigned char* pages = mmap(NULL, *length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED, "no memory");
    fill(pages, (size_t)n, seed);
    CHECK(mprotect(pages, *length, PROT_READ) == 0, "mprotect failed");
    return pages;
}

static void send(int mode, const void* buffer, int n, int peer, int tag) {
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Request request = MPI_REQUEST_NULL;
    switch (mode) {
        case 0:
            OK(MPI_Send(buffer, n, MPI_BYTE, peer, tag, comm));
            break;
        case 1:
            OK(MPI_Ssend(buffer, n, MPI_BYTE, peer, tag, comm));
            break;
        case 2:
            OK(MPI_Bsend(buffer, n, MPI_BYTE, peer, tag, comm));
            break;
        case 3:
            OK(MPI_Isend(buffer, n, MPI_BYTE, peer, tag, comm, &request));
            break;
        case 4:
            OK(MPI_Issend(buffer, n, MPI_BYTE, peer, tag, comm, &request));
            break;
        case 5:
            OK(MPI_Ibsend(buffer, n, MPI_BYTE, peer, tag, comm, &request));
            break;
        case 6:
            OK(MPI_Send_init(buffer, n, MPI_BYTE, peer, tag, comm, &request));
            OK(MPI_Start(&request));
            break;
        default:
            OK(MPI_Ssend_init(buffer, n, MPI_BYTE, peer, tag, comm, &request));
            OK(MPI_Start(&request));
    }
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    if (mode >= 6) OK(MPI_Request_free(&request));
}

/* Sends from read-only pages, then from a buffer that is overwritten as soon as the send is complete. */
static void sender(int mode, int n, int peer) {
    size_t length;
    unsigned char *pages = read_only(n, 1, &length), *buffer = memory((size_t)n);
    send(mode, pages, n, peer, 80);
    munmap(pages, length);
    fill(buffer, (size_t)n, 2);
    send(mode, buffer, n, peer, 81);
    memset(buffer, 0xFF, (size_t)n);
    free(buffer);
}

static void receiver(int n, int peer) {
    unsigned char* in = memory((size_t)n);
    for (int i = 0; i < 2; ++i) {
        MPI_Status status;
        OK(MPI_Recv(in, n, MPI_BYTE, peer, 80 + i, MPI_COMM_WORLD, &status));
        CHECK_STATUS(&status, peer, 80 + i, n);
        CHECK_FILLED(in, (size_t)n, (uint64_t)(1 + i));
    }
    free(in);
}

/* One read-only buffer, sent to all ranks at once. */
static void shared_buffer(int n) {
    size_t length;
    unsigned char* pages = read_only(n, (uint64_t)rank, &length);
    unsigned char** in = memory((size_t)size * sizeof *in);
    MPI_Request* requests = memory(2 * (size_t)size * sizeof *requests);
    for (int other = 0; other < size; ++other) {
        in[other] = memory((size_t)n);
        OK(MPI_Irecv(in[other], n, MPI_BYTE, other, 82, MPI_COMM_WORLD, &requests[other]));
    }
    for (int other = 0; other < size; ++other)
        OK(MPI_Isend(pages, n, MPI_BYTE, other, 82, MPI_COMM_WORLD, &requests[size + other]));
    OK(MPI_Waitall(2 * size, requests, MPI_STATUSES_IGNORE));
    for (int other = 0; other < size; ++other) {
        CHECK_FILLED(in[other], (size_t)n, (uint64_t)other);
        free(in[other]);
    }
    munmap(pages, length);
    free(in), free(requests);
}

void rule_send_buffer(void) {
    int room = (1 << 20) + MPI_BSEND_OVERHEAD, detached;
    void *attached = memory((size_t)room), *address;
    for (int round = 1; round<size; round += size> 2 ? size - 2 : 1) {
        int peer = partner_in(round);
        if (peer == rank) continue;
        for (int mode = 0; mode < MODES; ++mode) {
            for (int i = 0; i < few_count; ++i) {
                for (int turn = 0; turn < 2; ++turn) {
                    if ((rank < peer) != (turn == 0)) {
                        receiver(few_sizes[i], peer);
                        continue;
                    }
                    OK(MPI_Buffer_attach(attached, room));
                    sender(mode, few_sizes[i], peer);
                    OK(MPI_Buffer_detach(&address, &detached));
                }
            }
        }
    }
    free(attached);
    for (int i = 0; i < few_count; ++i) shared_buffer(few_sizes[i]);
}
