/* Threads of a process that start up, and end, at the same time:  starting_threads MODE ROUNDS
 *
 *   sessions   each of THREADS threads opens a session, makes a communicator of all processes from it, sends messages round, reduces, and closes it
 *   init       one of them does it with MPI_Init_thread and MPI_COMM_WORLD; MPI_Finalize after the last round
 *
 * Says "fine" where every message came as it was sent. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 3, LENGTH = 300000, WORLD = THREADS - 1 };
static const char* mode;
static int rounds, job_rank;
static pthread_barrier_t together;

static void fail(const char* what, int line) {
    fprintf(stderr, "FAILED line %d, process %d: %s\n", line, job_rank, what);
    _exit(1);
}
#define CHECK(condition) ((condition) ? (void)0 : fail(#condition, __LINE__))
#define OK(call) CHECK((call) == MPI_SUCCESS)

static void send_round(MPI_Comm comm, int thread, int n) {
    int rank, size;
    OK(MPI_Comm_rank(comm, &rank));
    OK(MPI_Comm_size(comm, &size));
    job_rank = rank;
    char *out = malloc((size_t)n), *in = calloc((size_t)n, 1);
    memset(out, 'A' + rank + 8 * thread, (size_t)n);
    OK(MPI_Sendrecv(out, n, MPI_CHAR, (rank + 1) % size, thread, in, n, MPI_CHAR, (rank + size - 1) % size,
                    thread, comm, MPI_STATUS_IGNORE));
    for (int i = 0; i < n; ++i) CHECK(in[i] == 'A' + (rank + size - 1) % size + 8 * thread);
    OK(MPI_Bcast(out, n, MPI_CHAR, 0, comm));
    for (int i = 0; i < n; ++i) CHECK(out[i] == 'A' + 8 * thread);
    /* MPIsec asks the library about type and operation, on a communicator that all threads need. */
    int highest = rank;
    OK(MPI_Allreduce(MPI_IN_PLACE, &highest, 1, MPI_INT, MPI_MAX, comm));
    CHECK(highest == size - 1);
    OK(MPI_Barrier(comm));
    free(out), free(in);
}

static void with_session(int thread, int round) {
    MPI_Session session;
    MPI_Group everyone;
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Info info;
    char tag[40];
    snprintf(tag, sizeof tag, "thread %d round %d", thread, round);
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "thread_level", "MPI_THREAD_MULTIPLE"));
    OK(MPI_Session_init(info, MPI_ERRORS_RETURN, &session));
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &everyone));
    OK(MPI_Comm_create_from_group(everyone, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    CHECK(comm != MPI_COMM_NULL);
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    send_round(comm, thread, 40);
    send_round(comm, thread, LENGTH);
    OK(MPI_Comm_free(&comm));
    OK(MPI_Group_free(&everyone));
    OK(MPI_Session_finalize(&session));
    OK(MPI_Info_free(&info));
}

static void with_world(int round) {
    int provided = MPI_THREAD_SINGLE;
    if (round == 0) OK(MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided));
    CHECK(round > 0 || provided == MPI_THREAD_MULTIPLE);
    send_round(MPI_COMM_WORLD, WORLD, 40);
    send_round(MPI_COMM_WORLD, WORLD, LENGTH);
}

static void* work(void* argument) {
    const int thread = *(int*)argument;
    for (int round = 0; round < rounds; ++round) {
        pthread_barrier_wait(&together);
        if (thread == WORLD && strcmp(mode, "init") == 0)
            with_world(round);
        else
            with_session(thread, round);
    }
    return NULL;
}

int main(int argc, char** argv) {
    pthread_t threads[THREADS];
    int numbers[THREADS];
    if (argc < 3) return 2;
    mode = argv[1], rounds = atoi(argv[2]);
    pthread_barrier_init(&together, NULL, THREADS);
    for (int i = 0; i < THREADS; ++i) numbers[i] = i, pthread_create(&threads[i], NULL, work, &numbers[i]);
    for (int i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
    if (strcmp(mode, "init") == 0) OK(MPI_Finalize());
    printf("fine\n");
    return 0;
}
