/* What it takes to start, on the slowest rank, in microseconds; each is printed as a line of JSON by rank 0. Then it ends.
 *
 * startup [init]    MPI_Init, and with the first MPI_Barrier: Open MPI connects nodes when a message first needs
 *                   it, so what MPIsec's key exchange makes it do in MPI_Init, plain does in the barrier
 * startup session   MPI_Session_init, without MPI_Init, to the first MPI_Barrier
 * startup spawn     MPI_Comm_spawn of as many ranks as there are, to the first MPI_Barrier with them */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define HAS_SESSIONS 1
#else
#define HAS_SESSIONS 0
#endif

static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void say(MPI_Comm comm, const char* what, double mine) {
    double longest;
    int rank;
    MPI_Reduce(&mine, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, comm);
    MPI_Comm_rank(comm, &rank);
    if (rank == 0) printf("{\"what\": \"%s\", \"time_us\": %.1f}\n", what, longest);
}

static void start_by_init(void) {
    const double start = now_us();
    MPI_Init(NULL, NULL);
    const double begun = now_us() - start;
    MPI_Barrier(MPI_COMM_WORLD);
    const double met = now_us() - start;
    say(MPI_COMM_WORLD, "MPI_Init", begun);
    say(MPI_COMM_WORLD, "and MPI_Barrier", met);
    MPI_Finalize();
}

static void start_by_session(void) {
#if HAS_SESSIONS
    const double start = now_us();
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "startup", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Barrier(comm);
    const double met = now_us() - start;
    say(comm, "MPI_Session_init to MPI_Barrier", met);
    MPI_Group_free(&group);
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
#endif
}

/* In the lab `rank` starts a program with the environment of its node, and would take LD_PRELOAD from there too. */
#define IN_THE_LAB "preload=$LD_PRELOAD; exec \"$0\" /usr/bin/env LD_PRELOAD=\"$preload\" \"$@\""

static void spawn(char* program) {
    char* lab = getenv("MPISEC_LAB_RANK");
    char *as_it_is[] = {"spawn", NULL}, *in_the_lab[] = {"-c", IN_THE_LAB, lab, program, "spawn", NULL};
    MPI_Comm parent, all = MPI_COMM_NULL;
    int ranks;
    MPI_Init(NULL, NULL);
    MPI_Comm_get_parent(&parent);
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = now_us();
    if (parent == MPI_COMM_NULL) {
        MPI_Comm_size(MPI_COMM_WORLD, &ranks);
        MPI_Comm_spawn(lab ? "/bin/sh" : program, lab ? in_the_lab : as_it_is, ranks, MPI_INFO_NULL, 0,
                       MPI_COMM_WORLD, &all, MPI_ERRCODES_IGNORE);
    } else {
        all = parent;
    }
    MPI_Barrier(all);
    if (parent == MPI_COMM_NULL) say(MPI_COMM_WORLD, "MPI_Comm_spawn to MPI_Barrier", now_us() - start);
    MPI_Comm_disconnect(&all);
    MPI_Finalize();
}

int main(int argc, char** argv) {
    const char* by = argc > 1 ? argv[1] : "init";
    if (strcmp(by, "init") == 0) {
        start_by_init();
    } else if (strcmp(by, "session") == 0 && HAS_SESSIONS) {
        start_by_session();
    } else if (strcmp(by, "spawn") == 0) {
        spawn(argv[0]);
    } else {
        fprintf(stderr, "startup: %s\n",
                strcmp(by, "session") == 0 ? "this MPI has no sessions" : "init, session or spawn");
        return 2;
    }
    return 0;
}
