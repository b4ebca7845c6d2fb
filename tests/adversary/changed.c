/* Messages of a node that somebody below MPIsec changed: rank 0 puts a changed copy into MPI past MPIsec, then
 * sends the message itself, so that the copy meets the message's record. Rank 1 must refuse the copy, whichever
 * byte differs, and receive the message.
 *
 * changed next|order      next: the record is the first one that rank 1 has not read; order: it has read on */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TAG = 7, GO = 8, MOST = 100000 };

static int (*past_isend)(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
static int (*past_recv)(void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status*);
static int (*past_wait)(MPI_Request*, MPI_Status*);
static int rank, next, refused, delivered, wrong;
static unsigned char message[2][MOST], copy[MOST], in[MOST];

static void find_past_mpisec(void) {
    static const char* const names[] = {"libmpi.so.12", "libmpich.so.12", "libmpi.so.40"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; ++i) {
        void* library = dlopen(names[i], RTLD_NOLOAD | RTLD_LAZY);
        if (!library) continue;
        *(void**)&past_isend = dlsym(library, "PMPI_Isend");
        *(void**)&past_recv = dlsym(library, "PMPI_Recv");
        *(void**)&past_wait = dlsym(library, "PMPI_Wait");
        return;
    }
    exit(3);
}

/* Nothing is received before all is sent. */
static void go(void) {
    int number = 0;
    MPI_Request request;
    if (next && rank == 0) {
        past_isend(&number, 1, MPI_INT, 1, GO, MPI_COMM_WORLD, &request);
        past_wait(&request, MPI_STATUS_IGNORE);
    } else if (next) {
        past_recv(&number, 1, MPI_INT, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (rank == 0) {
        MPI_Send(&number, 1, MPI_INT, 1, GO, MPI_COMM_WORLD);
    } else {
        MPI_Recv(&number, 1, MPI_INT, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

static void expect_refusal(int bytes) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    memset(in, 'x', sizeof in);
    const int code = MPI_Recv(in, bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS) MPI_Error_string(code, text, &length);
    refused += strstr(text, "MPIsec integrity error") != NULL;
    for (int i = 0; i < bytes; ++i) wrong += in[i] != 0;
}

static void expect_message(const unsigned char* sent, int bytes) {
    const int code = MPI_Recv(in, bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    delivered += code == MPI_SUCCESS && memcmp(in, sent, (size_t)bytes) == 0;
}

/* The copy differs in one bit of the byte at `place`; or, where that is -1, it is the message after this one. */
static void exchange(int bytes, int place) {
    MPI_Request request[3];
    memcpy(copy, message[place < 0], (size_t)bytes);
    if (place >= 0) copy[place] ^= (unsigned char)(1 << place % 8);
    if (rank == 0) {
        past_isend(copy, bytes, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &request[0]);
        for (int i = 0; i < 2; ++i)
            MPI_Isend(message[i], bytes, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &request[1 + i]);
    }
    go();
    if (rank == 0) {
        past_wait(&request[0], MPI_STATUS_IGNORE);
        MPI_Waitall(2, request + 1, MPI_STATUSES_IGNORE);
    } else {
        expect_refusal(bytes);
        for (int i = 0; i < 2; ++i) expect_message(message[i], bytes);
    }
}

int main(int argc, char** argv) {
    static const int sizes[] = {1, 4, 17, 40, 41, 64, 65, 1000, 4095, 4096, 4097, MOST};
    int exchanges = 0;
    if (argc < 2) return 2;
    next = strcmp(argv[1], "next") == 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    find_past_mpisec();
    for (int i = 0; i < MOST; ++i)
        message[0][i] = (unsigned char)(i * 7 + 1), message[1][i] = (unsigned char)(i * 5 + 2);
    for (unsigned i = 0; rank < 2 && i < sizeof sizes / sizeof *sizes; ++i) {
        const int n = sizes[i], places[] = {-1, 0, n / 3, n / 2, n - 1};
        for (unsigned j = 0; j < sizeof places / sizeof *places; ++j, ++exchanges) exchange(n, places[j]);
    }
    if (rank == 1)
        printf("exchanges %d refused %d delivered %d wrong %d\n", exchanges, refused, delivered, wrong);
    MPI_Finalize();
    return 0;
}
