/* Messages at the two ends of a job's life:  starting MODE MARKER
 *
 *   polls     a thread of rank 0 sends as soon as MPI_Initialized says true
 *   knows     as soon as the MPI library itself says so, as a tool that looks below MPIsec would
 *   late      rank 0 sends after MPI_Finalize
 *   together  all ranks call a collective after it
 *   session   the same while a session keeps the MPI library up
 *   past      rank 0 called MPI_Init past MPIsec and sends through it
 *
 * The last rank receives what is sent in time and prints how many markers arrived. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPEATS = 100, TAG = 7 };
static char message[65536];
static int length, below;

static void* in_library(const char* name) {
    const char* sonames[] = {"libmpi.so.12", "libmpich.so.12", "libmpi.so.40"};
    for (int i = 0; i < 3; ++i) {
        void* library = dlopen(sonames[i], RTLD_NOLOAD | RTLD_LAZY);
        if (library && dlsym(library, name)) return dlsym(library, name);
    }
    fprintf(stderr, "no %s\n", name);
    exit(2);
}

static int send_markers(int to) {
    return MPI_Send(message, length, MPI_CHAR, to, TAG, MPI_COMM_WORLD);
}

/* Rank 0 is told by its launcher: MPI_Comm_rank may not be called yet. */
static void* poll_and_send(void* unused) {
    int (*initialized)(int*) = below ? (int (*)(int*))in_library("PMPI_Initialized") : MPI_Initialized;
    int flag = 0;
    while (!flag && sched_yield() == 0) initialized(&flag);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 0 && send_markers(size - 1) != MPI_SUCCESS) fprintf(stderr, "not sent\n");
    return unused;
}

static void receive(int rank, int size) {
    static char in[sizeof message];
    if (rank != size - 1) return;
    MPI_Recv(in, length, MPI_CHAR, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    printf("%s\n", memcmp(in, message, (size_t)length) == 0 ? "arrived" : "WRONG");
}

int main(int argc, char** argv) {
    const char *mode = argv[1], *marker = argv[2];
    (void)argc;
    for (int i = 0; i < REPEATS; ++i) strcat(message, marker);
    length = (int)strlen(message);
    /* Another text than the argument's, which the launcher carries over the network in clear. */
    for (int i = 0; i < length; ++i) ++message[i];
    int rank, size, provided;
    pthread_t thread;
    const int threaded = !strcmp(mode, "polls") || !strcmp(mode, "knows");
    below = !strcmp(mode, "knows");
    if (threaded) pthread_create(&thread, NULL, poll_and_send, NULL);
#if MPI_VERSION >= 4
    MPI_Session session = MPI_SESSION_NULL;
    if (!strcmp(mode, "session")) MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
#endif
    if (!strcmp(mode, "past")) {
        int (*init)(int*, char***) = (int (*)(int*, char***))in_library("PMPI_Init");
        init(NULL, NULL);
    } else {
        MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (!strcmp(mode, "past") && rank == 0) send_markers(size - 1);
    if (!strcmp(mode, "past")) receive(rank, size);
    if (threaded) {
        receive(rank, size);
        pthread_join(thread, NULL);
    }
    MPI_Finalize();
    int initialized = 0, finalized = 0;
    MPI_Initialized(&initialized);
    MPI_Finalized(&finalized);
    if (!initialized || !finalized) printf("WRONG after MPI_Finalize\n");
    if (!strcmp(mode, "together")) {
        MPI_Bcast(message, length, MPI_CHAR, 0, MPI_COMM_WORLD);
        fprintf(stderr, "SENT after MPI_Finalize\n");
        return 0;
    }
    if (!threaded && rank == 0) {
        fprintf(stderr, "sends late\n");
        if (send_markers(size - 1) != MPI_SUCCESS) return 3;
        fprintf(stderr, "SENT after MPI_Finalize\n");
    }
#if MPI_VERSION >= 4
    if (session != MPI_SESSION_NULL) MPI_Session_finalize(&session);
#endif
    return 0;
}
