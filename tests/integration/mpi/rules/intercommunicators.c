/* M11: inter-communicators. Two groups, even and odd ranks, so that both local and remote pairs are across;
 * point-to-point messages of every size, wildcards, probes, and the communicator that merging gives. */
#include <pthread.h>

#include "harness.h"
#include "rules.h"

static void ring(MPI_Comm inter, int n) {
    int me, remote;
    OK(MPI_Comm_rank(inter, &me));
    OK(MPI_Comm_remote_size(inter, &remote));
    unsigned char *out = memory((size_t)n), *in = memory((size_t)n);
    MPI_Request* requests = memory((size_t)remote * sizeof *requests);
    fill(out, (size_t)n, (uint64_t)rank);
    for (int i = 0; i < remote; ++i) OK(MPI_Isend(out, n, MPI_BYTE, i, 5, inter, &requests[i]));
    for (int i = 0; i < remote; ++i) {
        MPI_Status status, probed;
        OK(MPI_Probe(MPI_ANY_SOURCE, 5, inter, &probed));
        OK(MPI_Recv(in, n, MPI_BYTE, probed.MPI_SOURCE, 5, inter, &status));
        int world = 2 * status.MPI_SOURCE + (rank % 2 ? 0 : 1);
        CHECK_STATUS(&status, status.MPI_SOURCE, 5, n);
        CHECK_FILLED(in, (size_t)n, (uint64_t)world);
    }
    OK(MPI_Waitall(remote, requests, MPI_STATUSES_IGNORE));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    free(out), free(in), free(requests);
}

/* Of one thread: inter-communicators between the same groups as the other thread's, at the same time, by a tag and a
 * communicator that joins the leaders of which one or the other is its own. */
struct maker {
    pthread_t id;
    MPI_Comm half, joined;
    int tag;
};

static void* make_some(void* argument) {
    struct maker* me = argument;
    for (int i = 0; i < 8; ++i) {
        MPI_Comm inter;
        int out = rank * 1000 + me->tag, in = -1;
        MPI_Status status;
        OK(MPI_Intercomm_create(me->half, 0, me->joined, 1 - rank % 2, me->tag, &inter));
        const int other = rank / 2;
        int theirs;
        OK(MPI_Comm_remote_size(inter, &theirs));
        if (other < theirs)
            OK(MPI_Sendrecv(&out, 1, MPI_INT, other, 3, &in, 1, MPI_INT, other, 3, inter, &status));
        CHECK(other >= theirs || in % 1000 == me->tag, "%d came by the other thread's communicator", in);
        OK(MPI_Comm_free(&inter));
    }
    return NULL;
}

static void at_the_same_time(int same_tag) {
    struct maker makers[2];
#if defined(OPEN_MPI) || \
    (defined(MPICH_NUMVERSION) && MPICH_NUMVERSION < 50000000) /* plain ones crash, or hang */
    return;
#endif
    if (library_is("Intel")) return; /* plain: a double free */
    if (threads_given < MPI_THREAD_MULTIPLE || size < 2) return;
    for (int i = 0; i < 2; ++i) {
        OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &makers[i].half));
        if (same_tag || i == 0)
            OK(MPI_Comm_dup(MPI_COMM_WORLD, &makers[i].joined));
        else
            makers[i].joined = makers[0].joined;
        makers[i].tag = same_tag ? 5 : 5 + 256 * i;
    }
    for (int i = 0; i < 2; ++i)
        CHECK(pthread_create(&makers[i].id, NULL, make_some, &makers[i]) == 0, "pthread_create");
    for (int i = 0; i < 2; ++i) pthread_join(makers[i].id, NULL);
    for (int i = 0; i < 2; ++i) {
        OK(MPI_Comm_free(&makers[i].half));
        if (same_tag || i == 0) OK(MPI_Comm_free(&makers[i].joined));
    }
}

void rule_intercommunicators(void) {
    MPI_Comm half, inter, copy, merged;
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half));
    OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank % 2 ? 0 : 1, 99, &inter));
    for (int i = 0; i < few_count; ++i) ring(inter, few_sizes[i]);
    OK(MPI_Comm_dup(inter, &copy));
    ring(copy, 100);
    OK(MPI_Intercomm_merge(copy, rank % 2, &merged));
    int me, in = -1;
    OK(MPI_Comm_rank(merged, &me));
    OK(MPI_Sendrecv(&me, 1, MPI_INT, (me + 1) % size, 1, &in, 1, MPI_INT, (me + size - 1) % size, 1, merged,
                    MPI_STATUS_IGNORE));
    CHECK(in == (me + size - 1) % size, "the merged communicator delivered %d", in);
    OK(MPI_Comm_free(&merged));
    OK(MPI_Comm_free(&copy));
    OK(MPI_Comm_free(&inter));
    OK(MPI_Comm_free(&half));
    at_the_same_time(1);
    at_the_same_time(0);
}
