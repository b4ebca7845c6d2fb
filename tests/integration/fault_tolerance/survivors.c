/* Processes die and the others go on: survivors WHERE VICTIM…
 * The victims kill themselves one after the other (-1: nobody), at WHERE:
 *   barrier, allreduce   when the others are in that collective of MPI_COMM_WORLD
 *   large                when each has sent half a large message: its receiver waits for the rest
 *   any                  when a receive from MPI_ANY_SOURCE waits for it
 *   agree                when the others wait for it in an agreement
 * Each time the survivors revoke the communicator, agree on a flag, shrink it, and go on with what is left: collectives, large messages, a
 * division. MARKER is in all their data. "ok" from each at the end. */
#include <mpi.h>
#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MARKER 0x4D504953 /* "SIPM" */
enum { LARGE = 200000, MORE_THAN_MPI_TAKES = 4 << 20 };

static int world_rank;

static void check(int good, const char* what) {
    if (good) return;
    fprintf(stderr, "rank %d: %s\n", world_rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static int class_of(int code) {
    int error_class = MPI_SUCCESS;
    if (code != MPI_SUCCESS) MPI_Error_class(code, &error_class);
    return error_class;
}

static int is_failure(int code) {
    const int error_class = class_of(code);
    return error_class == MPIX_ERR_PROC_FAILED || error_class == MPIX_ERR_PROC_FAILED_PENDING ||
           error_class == MPIX_ERR_REVOKED;
}

/* What works among those who are left. */
static void use(MPI_Comm comm) {
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int64_t mine[4] = {MARKER + ((int64_t)MARKER << 32), rank, 1, world_rank}, sum[4];
    check(MPI_Allreduce(mine, sum, 4, MPI_INT64_T, MPI_SUM, comm) == MPI_SUCCESS, "MPI_Allreduce");
    check(sum[1] == (int64_t)size * (size - 1) / 2 && sum[2] == size, "another sum");
    int* out = malloc(LARGE * sizeof *out);
    int* in = malloc(LARGE * sizeof *in);
    for (int i = 0; i < LARGE; ++i) out[i] = MARKER;
    out[LARGE - 1] = rank;
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    check(MPI_Sendrecv(out, LARGE, MPI_INT, next, 7, in, LARGE, MPI_INT, before, 7, comm,
                       MPI_STATUS_IGNORE) == MPI_SUCCESS,
          "MPI_Sendrecv");
    check(in[0] == MARKER && in[LARGE - 1] == before, "another message");
    free(out), free(in);
    MPI_Comm half;
    check(MPI_Comm_split(comm, rank % 2, rank, &half) == MPI_SUCCESS, "MPI_Comm_split");
    check(MPI_Barrier(half) == MPI_SUCCESS, "MPI_Barrier of a part");
    MPI_Comm_free(&half);
}

/* The victim does not come back. Others return when they were told of its death. */
static void die_or_wait(const char* where, MPI_Comm comm, int dies, int rank, int size) {
    static int large[MORE_THAN_MPI_TAKES];
    int code = MPI_SUCCESS, victim = dies ? rank : -1, sum = 0;
    MPI_Allreduce(&victim, &sum, 1, MPI_INT, MPI_MAX, comm);
    victim = sum;
    if (victim < 0) return;
    if (dies && strcmp(where, "large") == 0) {
        MPI_Request request; /* its receiver has not come yet: segments wait */
        MPI_Isend(large, MORE_THAN_MPI_TAKES, MPI_INT, (rank + 1) % size, 3, comm, &request);
        int flag;
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    }
    if (dies && strcmp(where, "agree") == 0) usleep(300000);
    if (dies) raise(SIGKILL);
    if (strcmp(where, "large") == 0 && rank == (victim + 1) % size)
        code = MPI_Recv(large, MORE_THAN_MPI_TAKES, MPI_INT, victim, 3, comm, MPI_STATUS_IGNORE);
    else if (strcmp(where, "any") == 0 && rank == 0)
        code = MPI_Recv(large, 1, MPI_INT, MPI_ANY_SOURCE, 3, comm, MPI_STATUS_IGNORE);
    else if (strcmp(where, "barrier") == 0)
        code = MPI_Barrier(comm);
    else if (strcmp(where, "agree") == 0)
        code = MPIX_Comm_agree(comm, &sum);
    else
        code = MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    check(is_failure(code), "the death of a rank did not end a call in its error");
}

static void check_revoked(MPI_Comm comm, int rank) {
    int value = MARKER;
    check(MPIX_Comm_revoke(comm) == MPI_SUCCESS, "MPIX_Comm_revoke");
    check(class_of(MPI_Send(&value, 1, MPI_INT, rank == 0 ? 1 : 0, 5, comm)) == MPIX_ERR_REVOKED,
          "a message on a revoked communicator");
    check(class_of(MPI_Barrier(comm)) == MPIX_ERR_REVOKED, "a barrier on a revoked communicator");
}

/* Each clears a bit of its own; all keep those of the marker's upper half. */
static int flag_of(int rank) {
    return (MARKER | 0xFFFF) & ~(1 << rank);
}

static void check_flag(MPI_Comm comm, int flag, int died) {
    int expected = (MARKER | 0xFFFF), size;
    MPI_Comm_size(comm, &size);
    for (int other = 0; other < size; ++other)
        if (other != died) expected &= ~(1 << other);
    if (flag != expected) fprintf(stderr, "rank %d: %x instead of %x\n", world_rank, flag, expected);
    check(flag == expected, "another flag");
}

/* Before all know of it, the death is an error, which the handler gets once; the flags are what they would be. */
static int handled;
static void count_error(MPI_Comm* comm, int* code, ...) {
    (void)comm;
    handled += class_of(*code) == MPIX_ERR_PROC_FAILED;
}

static void check_failure_not_acknowledged(MPI_Comm comm, int rank, int died) {
    MPI_Errhandler handler;
    MPI_Request request;
    int flag = flag_of(rank);
    MPI_Comm_create_errhandler(count_error, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    handled = 0;
    check(MPIX_Comm_iagree(comm, &flag, &request) == MPI_SUCCESS, "MPIX_Comm_iagree");
    check(class_of(MPI_Wait(&request, MPI_STATUS_IGNORE)) == MPIX_ERR_PROC_FAILED,
          "an agreement is the error for a death that nobody has acknowledged");
    check(handled == 1, "the error handler is called once");
    check_flag(comm, flag, died);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&handler);
}

static void check_agreement(MPI_Comm comm, int rank, int died) {
    MPI_Group failed;
    MPIX_Comm_failure_ack(comm);
    MPIX_Comm_failure_get_acked(comm, &failed);
    if (failed != MPI_GROUP_EMPTY) MPI_Group_free(&failed);
    int flag = flag_of(rank);
    const int code = MPIX_Comm_agree(comm, &flag);
    check(code == MPI_SUCCESS || class_of(code) == MPIX_ERR_PROC_FAILED, "MPIX_Comm_agree");
    check_flag(comm, flag, died);
    /* Two at a time, the later one waited for first; a blocking one must wait for both. */
    int flags[2] = {flag_of(rank), ~0 ^ (1 << rank)};
    MPI_Request requests[2];
    for (int i = 0; i < 2; ++i)
        check(MPIX_Comm_iagree(comm, &flags[i], &requests[i]) == MPI_SUCCESS, "MPIX_Comm_iagree");
    flag = ~0;
    check(MPIX_Comm_agree(comm, &flag) == MPI_SUCCESS && flag == ~0, "MPIX_Comm_agree behind others");
    for (int i = 1; i >= 0; --i)
        check(MPI_Wait(&requests[i], MPI_STATUS_IGNORE) == MPI_SUCCESS, "MPI_Wait of an agreement");
    check_flag(comm, flags[0], died);
    check_flag(comm, flags[1] & (MARKER | 0xFFFF), died);
}

static void leave(int signal) {
    (void)signal;
    _exit(0);
}

int main(int argc, char** argv) {
    /* Open MPI writes to connections of the dead, plain too. */
    signal(SIGPIPE, SIG_IGN);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm comm = MPI_COMM_WORLD, left;
    use(comm);
    for (int i = 2; i < argc; ++i) {
        int rank, size, new_size;
        MPI_Comm_rank(comm, &rank);
        MPI_Comm_size(comm, &size);
        const int victim = atoi(argv[i]);
        die_or_wait(argv[1], comm, rank == victim, rank, size);
        if (victim >= 0) {
            check_revoked(comm, rank);
            check_failure_not_acknowledged(comm, rank, victim);
        }
        check_agreement(comm, rank, victim);
        check(MPIX_Comm_shrink(comm, &left) == MPI_SUCCESS, "MPIX_Comm_shrink");
        MPI_Comm_size(left, &new_size);
        check(new_size == size - (victim >= 0), "as many are left as were before");
        use(left);
        if (comm != MPI_COMM_WORLD) MPI_Comm_free(&comm);
        comm = left;
    }
    MPI_Comm_free(&comm);
    printf("ok %d\n", world_rank);
    fflush(stdout);
    signal(SIGALRM, leave); /* Open MPI 5 now and then stays in MPI_Finalize when a rank was killed */
    alarm(10);
    MPI_Finalize();
    return 0;
}
