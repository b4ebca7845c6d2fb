/* Children of a rank whose job is under way:  forking WAY MARKER
 *
 * Rank 0 makes a child in the middle of an exchange with the last rank, which then goes on: every message
 * must arrive. The child leaves in the way that WAY names; for the sending ones the MARKER must not leave the
 * node. Rank 0 prints "child N" with its exit status (128 and more: by a signal). */
#define _GNU_SOURCE
#include <mpi.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 200, TAG = 3, LONG = 300000 };
extern char** environ;
static int rank, size, last;
static MPI_Comm copy, half;
static char message[65536];
static int length;

static void exchange(int rounds) {
    static int out[LONG], in[LONG];
    for (int round = 0; round < rounds; ++round) {
        const int n = round % 20 == 19 ? LONG : 1 + round % 7, other = rank == 0 ? last : 0;
        for (int i = 0; i < n; ++i) out[i] = round * 3 + i + rank;
        MPI_Comm comm = round % 2 ? copy : MPI_COMM_WORLD;
        MPI_Request request;
        MPI_Irecv(in, n, MPI_INT, other, TAG, comm, &request);
        MPI_Send(out, n, MPI_INT, other, TAG, comm);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int i = 0; i < n; ++i)
            if (in[i] != round * 3 + i + other) {
                printf("WRONG round %d element %d: %d\n", round, i, in[i]);
                MPI_Abort(MPI_COMM_WORLD, 4);
            }
    }
}

static void leave_mpi(void) {
    int initialized = 0, finalized = 0;
    MPI_Initialized(&initialized);
    MPI_Finalized(&finalized);
    if (initialized && !finalized) MPI_Finalize();
}

/* What the child does; returns its exit status where it goes on. */
static int behave(const char* way) {
    MPI_Request request;
    int flag, one = 1, sum = 0, code = 0;
    if (!strcmp(way, "exit")) exit(0);
    if (!strcmp(way, "_exit")) _exit(0);
    if (!strcmp(way, "tidy")) {
        atexit(leave_mpi);
        exit(0);
    }
    if (!strcmp(way, "exec")) execlp("echo", "echo", "from the child", (char*)NULL);
    if (!strcmp(way, "send") || !strcmp(way, "raw"))
        code = MPI_Send(message, length, MPI_CHAR, last, TAG, MPI_COMM_WORLD);
    if (!strcmp(way, "large") || !strcmp(way, "raw-large"))
        code = MPI_Ssend(message, (int)sizeof message, MPI_CHAR, last, TAG, copy);
    if (!strcmp(way, "isend")) code = MPI_Isend(message, length, MPI_CHAR, last, TAG, copy, &request);
    if (!strcmp(way, "probe"))
        code = MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    if (!strcmp(way, "allreduce")) code = MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (!strcmp(way, "spawn"))
        code = MPI_Comm_spawn("true", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &half,
                              MPI_ERRCODES_IGNORE);
    if (!strcmp(way, "init")) code = MPI_Init(NULL, NULL);
    if (!strcmp(way, "finalize")) code = MPI_Finalize();
    if (!strcmp(way, "initialized")) {
        MPI_Initialized(&flag);
        _exit(flag ? 9 : 0);
    }
    fprintf(stderr, "the child's call returned %d\n", code);
    _exit(code == MPI_SUCCESS ? 0 : 5);
}

static int status_of(pid_t child) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int make_child(const char* way) {
    if (!strcmp(way, "system")) return WEXITSTATUS(system("echo from the child"));
    if (!strcmp(way, "popen")) {
        char line[64] = "";
        FILE* pipe = popen("echo from the child", "r");
        if (!fgets(line, sizeof line, pipe)) return 6;
        fputs(line, stdout);
        return pclose(pipe);
    }
    if (!strcmp(way, "posix_spawn")) {
        char* arguments[] = {"echo", "from the child", NULL};
        pid_t child;
        if (posix_spawnp(&child, "echo", NULL, NULL, arguments, environ) != 0) return 7;
        return status_of(child);
    }
    if (!strcmp(way, "vfork")) {
        pid_t child = vfork();
        if (child == 0) {
            execlp("echo", "echo", "from the child", (char*)NULL);
            _exit(8);
        }
        return status_of(child);
    }
    fflush(NULL);
    /* "raw": as a runtime that makes its children itself; no handler of pthread_atfork() runs. */
    const int raw = !strncmp(way, "raw", 3);
    pid_t child = raw ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();
    if (child == 0) {
        alarm(20);
        _exit(behave(way));
    }
    return status_of(child);
}

int main(int argc, char** argv) {
    (void)argc;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    last = size - 1;
    for (int i = 0; i < 100; ++i) strcat(message, argv[2]);
    length = (int)strlen(message);
    /* Another text than the argument's, which the launcher carries over the network in clear. */
    for (int i = 0; i < length; ++i) ++message[i];
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &half);
    int left = 0, stall = !strcmp(argv[1], "stall");
    MPI_Request request; /* under way while the child comes and goes */
    MPI_Irecv(&left, 1, MPI_INT, rank == 0 ? last : 0, TAG + 1, MPI_COMM_WORLD, &request);
    if (rank == 0 || rank == last) exchange(ROUNDS);
    if (rank == 0) {
        printf("child %d\n", make_child(stall ? "_exit" : argv[1]));
        fflush(stdout);
    }
    if (stall && rank == last) sleep(4);
    if (rank == 0 || rank == last) {
        exchange(ROUNDS);
        MPI_Send(&rank, 1, MPI_INT, rank == 0 ? last : 0, TAG + 1, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(half);
    MPI_Comm_free(&copy);
    MPI_Finalize();
    if (rank == 0) printf("the job went on\n");
    return 0;
}
