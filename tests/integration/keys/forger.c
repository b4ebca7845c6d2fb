/* Plays the network at start-up: preloaded under MPIsec, it changes what travels between nodes. Works on the
 * rank that FORGER_RANK names.
 *
 * FORGER_SEND names a start-up message by its tag (src/shim/startup/key_exchange.cpp):
 *
 * - TAG:BYTE flips a bit of that byte,
 * - TAG:+N sends N bytes more (or less, -N),
 * - TAG:drop never sends it.
 *
 * FORGER_HELLO names a hello as it arrives here (src/shim/startup/hello.hpp):
 *
 * - RANK:BYTE flips a bit of that byte of RANK's hello,
 * - RANK:here makes RANK's hello say that it is on the receiver's node,
 * - RANK:job prints the job's mark in RANK's hello. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    hello_bytes = 256,
    place_at = 112,
    place_bytes = 16,
    job_at = 232,
    job_bytes = 16,
    hellos_tag = 32767
};

static int my_rank(void) {
    int rank;
    const char* said = getenv("PMI_RANK"); /* in a session there is no MPI_COMM_WORLD */
    if (said) return atoi(said);
    int (*comm_rank)(MPI_Comm, int*) = (int (*)(MPI_Comm, int*))dlsym(RTLD_NEXT, "PMPI_Comm_rank");
    comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

/* The two halves of a setting that applies to this rank; 0 when there is none. */
static int setting(const char* name, int* number, const char** what) {
    const char *text = getenv(name), *rank = getenv("FORGER_RANK");
    if (!text || !rank || atoi(rank) != my_rank()) return 0;
    *number = atoi(text);
    *what = strchr(text, ':') + 1;
    return 1;
}

/* Whether messages with this tag are changed; if so `to` is what travels instead, and *count its length, -1
 * when nothing does. */
static int forge(const void* from, unsigned char* to, size_t room, int* count, int tag) {
    int which;
    const char* what;
    if (!setting("FORGER_SEND", &which, &what) || which != tag || (size_t)*count + 256 > room) return 0;
    memset(to, 0, room);
    memcpy(to, from, *count);
    if (strcmp(what, "drop") == 0)
        *count = -1;
    else if (*what == '+' || *what == '-')
        *count += atoi(what);
    else
        to[atoi(what)] ^= 0x10;
    return 1;
}

int PMPI_Send(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
    int (*next)(const void*, int, MPI_Datatype, int, int, MPI_Comm) =
        (int (*)(const void*, int, MPI_Datatype, int, int, MPI_Comm))dlsym(RTLD_NEXT, "PMPI_Send");
    unsigned char changed[512];
    if (!forge(buffer, changed, sizeof changed, &count, tag)) return next(buffer, count, type, to, tag, comm);
    return count < 0 ? MPI_SUCCESS : next(changed, count, type, to, tag, comm);
}

/* Hellos. What is sent stays in memory. */
int PMPI_Isend(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
               MPI_Request* request) {
    int (*next)(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*) = (int (*)(
        const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*))dlsym(RTLD_NEXT, "PMPI_Isend");
    static unsigned char changed[8][8 * 1024];
    static int used;
    const void* sent = buffer;
    if (used < 8 && forge(buffer, changed[used], sizeof changed[used], &count, tag)) sent = changed[used++];
    return next(sent, count, type, to, tag, comm, request);
}

static void print_job(const unsigned char* mark) {
    char text[2 * job_bytes + 1];
    for (int i = 0; i < job_bytes; ++i) snprintf(text + 2 * i, 3, "%02x", mark[i]);
    printf("job %s\n", text);
    fflush(stdout);
}

/* Hellos that arrive: those of the ranks from `first` on. */
static struct {
    unsigned char* at;
    int first, count;
    MPI_Request request;
} arriving[8];

int PMPI_Irecv(void* buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
               MPI_Request* request) {
    int (*next)(void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*) =
        (int (*)(void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*))dlsym(RTLD_NEXT, "PMPI_Irecv");
    int code = next(buffer, count, type, from, tag, comm, request);
    for (int i = 0; tag == hellos_tag && i < 8; i++) {
        if (arriving[i].at) continue;
        arriving[i].at = buffer;
        arriving[i].first = from < my_rank() ? 0 : from; /* all of them come from the rank above */
        arriving[i].count = count / hello_bytes;
        arriving[i].request = *request;
        break;
    }
    return code;
}

static void forge_hello(unsigned char* hellos, int first, int count) {
    int rank;
    const char* what;
    if (!setting("FORGER_HELLO", &rank, &what) || rank < first || rank >= first + count) return;
    if (strcmp(what, "job") == 0)
        print_job(hellos + (rank - first) * hello_bytes + job_at);
    else if (strcmp(what, "here") == 0)
        memcpy(hellos + (rank - first) * hello_bytes + place_at,
               hellos + (my_rank() - first) * hello_bytes + place_at, place_bytes);
    else
        hellos[(rank - first) * hello_bytes + atoi(what)] ^= 0x10;
}

int PMPI_Test(MPI_Request* request, int* done, MPI_Status* status) {
    int (*next)(MPI_Request*, int*, MPI_Status*) =
        (int (*)(MPI_Request*, int*, MPI_Status*))dlsym(RTLD_NEXT, "PMPI_Test");
    const MPI_Request watched = *request;
    int code = next(request, done, status);
    for (int i = 0; *done && i < 8; i++) {
        if (!arriving[i].at || arriving[i].request != watched) continue;
        forge_hello(arriving[i].at, arriving[i].first, arriving[i].count);
        arriving[i].at = NULL;
    }
    return code;
}
