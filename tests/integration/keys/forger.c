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

enum { hello_bytes = 256, place_at = 112, place_bytes = 16, job_at = 232, job_bytes = 16 };

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

/* Hellos in rounds (Open MPI). What is sent stays in memory: the last message of a rank is the longest. */
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

static unsigned char* hellos;
static const void* own_hello;
static MPI_Request hellos_request;

int PMPI_Iallgather(const void* from, int count, MPI_Datatype type, void* to, int to_count,
                    MPI_Datatype to_type, MPI_Comm comm, MPI_Request* request) {
    int (*next)(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm, MPI_Request*) =
        (int (*)(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm, MPI_Request*))dlsym(
            RTLD_NEXT, "PMPI_Iallgather");
    int code = next(from, count, type, to, to_count, to_type, comm, request);
    hellos = to;
    own_hello = from;
    hellos_request = *request;
    return code;
}

int PMPI_Test(MPI_Request* request, int* done, MPI_Status* status) {
    int (*next)(MPI_Request*, int*, MPI_Status*) =
        (int (*)(MPI_Request*, int*, MPI_Status*))dlsym(RTLD_NEXT, "PMPI_Test");
    const int watched = hellos && *request == hellos_request;
    int code = next(request, done, status), rank;
    const char* what;
    if (watched && *done && setting("FORGER_HELLO", &rank, &what)) {
        if (strcmp(what, "job") == 0)
            print_job(hellos + rank * hello_bytes + job_at);
        else if (strcmp(what, "here") == 0)
            memcpy(hellos + rank * hello_bytes + place_at, (const unsigned char*)own_hello + place_at,
                   place_bytes);
        else
            hellos[rank * hello_bytes + atoi(what)] ^= 0x10;
        hellos = NULL;
    }
    return code;
}
