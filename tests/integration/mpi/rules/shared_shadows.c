/* M11: communicators made from one another keep their collectives apart, whatever their order on each rank,
 * and outlive each other; so do inter-communicators duplicated without waiting, one rank on one side; and a
 * topology on fewer ranks than its parent is a communicator like others. */
#include <pthread.h>

#include "harness.h"
#include "rules.h"

enum { KINDS = 6, LONG = 3000, WORN = 30, ROUNDS = 20, DEPTH = 9 };

static void check_sum(MPI_Comm comm, int salt) {
    int ranks, sum = -1, mine = salt;
    OK(MPI_Comm_size(comm, &ranks));
    OK(MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK(sum == salt * ranks, "a sum of %d over %d ranks gave %d", salt, ranks, sum);
}

/* Collectives under way on all of them, started in another order on every rank; the first is freed meanwhile.
 */
static void at_once(MPI_Comm comms[KINDS]) {
    static int mine[KINDS][LONG], sums[KINDS][LONG];
    MPI_Request requests[KINDS];
    for (int i = 0; i < KINDS; ++i) {
        const int kind = (i + rank) % KINDS;
        for (int at = 0; at < LONG; ++at) mine[kind][at] = kind * 100 + at;
        OK(MPI_Iallreduce(mine[kind], sums[kind], LONG, MPI_INT, MPI_SUM, comms[kind], &requests[kind]));
    }
    int ranks[KINDS];
    for (int kind = 0; kind < KINDS; ++kind) OK(MPI_Comm_size(comms[kind], &ranks[kind]));
    OK(MPI_Waitall(KINDS, requests, MPI_STATUSES_IGNORE));
    for (int kind = 0; kind < KINDS; ++kind)
        for (int at = 0; at < LONG; ++at)
            CHECK(sums[kind][at] == ranks[kind] * (kind * 100 + at),
                  "communicator %d: a sum of %d ranks gave %d", kind, ranks[kind], sums[kind][at]);
}

static void family(void) {
    MPI_Comm comms[KINDS], copy, grid;
    int dims[1] = {size}, periods[1] = {1};
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]));
    OK(MPI_Comm_dup(comms[0], &comms[1]));
    OK(MPI_Comm_split(comms[0], rank % 2, -rank, &comms[2]));
    OK(MPI_Cart_create(comms[1], 1, dims, periods, 0, &grid));
    comms[3] = grid;
    OK(MPI_Comm_split(comms[2], 0, rank, &comms[4]));
    OK(MPI_Comm_dup(comms[4], &comms[5]));
    at_once(comms);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &copy));
    OK(MPI_Comm_free(&comms[0])); /* those made from it live on */
    comms[0] = copy;
    at_once(comms);
    for (int i = 0; i < KINDS; ++i) OK(MPI_Comm_free(&comms[i]));
}

/* So many from one that it has to be given more tags for them. */
static void worn(void) {
    MPI_Comm copy, parent, made[WORN];
    MPI_Request request;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &copy));
    OK(MPI_Comm_dup(copy, &parent));
    for (int i = 0; i < WORN; ++i) {
        if (i % 3 == 0) {
            OK(MPI_Comm_idup(parent, &made[i], &request));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        } else
            OK(MPI_Comm_dup(parent, &made[i]));
        check_sum(made[i], i);
    }
    for (int i = 0; i < WORN; ++i) {
        check_sum(made[i], i + 7);
        OK(MPI_Comm_free(&made[i]));
    }
    OK(MPI_Comm_free(&parent));
    OK(MPI_Comm_free(&copy));
}

/* Duplicates of duplicates, so deep that no tags are left for them: two at a time, which neighbouring ranks
 * start and complete in different orders. */
static void crossed(int inter) {
    MPI_Comm comms[2], copies[2], half = MPI_COMM_NULL;
    MPI_Request requests[2];
    const int first = rank % 2;
    if (inter) OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half));
    for (int i = 0; i < 2; ++i)
        if (inter)
            OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, i, &comms[i]));
        else
            OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]));
    for (int depth = 0; depth < DEPTH; ++depth) {
        OK(MPI_Comm_idup(comms[first], &copies[first], &requests[first]));
        OK(MPI_Comm_idup(comms[!first], &copies[!first], &requests[!first]));
        OK(MPI_Wait(&requests[first], MPI_STATUS_IGNORE));
        OK(MPI_Wait(&requests[!first], MPI_STATUS_IGNORE));
        int in[2] = {1, 100}, sums[2] = {-1, -1}, ranks;
        for (int i = 0; i < 2; ++i) {
            const int at = first ^ i;
            OK(MPI_Iallreduce(&in[at], &sums[at], 1, MPI_INT, MPI_SUM, copies[at], &requests[at]));
        }
        OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        for (int i = 0; i < 2; ++i) {
            if (inter)
                OK(MPI_Comm_remote_size(copies[i], &ranks));
            else
                OK(MPI_Comm_size(copies[i], &ranks));
            CHECK(sums[i] == ranks * in[i], "depth %d: a sum of %d over %d ranks gave %d", depth, in[i],
                  ranks, sums[i]);
            OK(MPI_Comm_free(&comms[i]));
            comms[i] = copies[i];
        }
    }
    for (int i = 0; i < 2; ++i) OK(MPI_Comm_free(&comms[i]));
    if (half != MPI_COMM_NULL) OK(MPI_Comm_free(&half));
}

/* Duplicates under way while others are made from the same communicator. Open MPI by itself hangs now and
 * then when MPI_Comm_create is among these. */
static void overlapped(void) {
    enum { COPIES = 5 };
    MPI_Comm copies[COPIES], made[3];
    MPI_Request requests[COPIES];
    MPI_Group world, part;
    int low[1][3] = {{0, size / 2 - 1, 1}};
    for (int i = 0; i < COPIES; ++i) OK(MPI_Comm_idup(MPI_COMM_WORLD, &copies[i], &requests[i]));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &made[0]));
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &made[1]));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_range_incl(world, 1, low, &part));
    OK(MPI_Comm_create(MPI_COMM_WORLD, part, &made[2]));
    OK(MPI_Waitall(COPIES, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < COPIES; ++i) {
        check_sum(copies[i], i + 1);
        OK(MPI_Comm_free(&copies[i]));
    }
    for (int i = 0; i < 3; ++i)
        if (made[i] != MPI_COMM_NULL) {
            check_sum(made[i], i + 1);
            OK(MPI_Comm_free(&made[i]));
        }
    OK(MPI_Group_free(&part));
    OK(MPI_Group_free(&world));
}

static void alone_on_one_side(int alone) {
    MPI_Comm half, inter, copy, merged;
    MPI_Request request;
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank == alone, rank, &half));
    OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank == alone ? (alone == 0) : alone, 7, &inter));
    for (int i = 0; i < 3; ++i) {
        OK(MPI_Comm_idup(inter, &copy, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        int in = 1, sum = -1;
        OK(MPI_Allreduce(&in, &sum, 1, MPI_INT, MPI_SUM, copy));
        CHECK(sum == (rank == alone ? size - 1 : 1), "a sum over the other group gave %d", sum);
        OK(MPI_Intercomm_merge(copy, rank == alone, &merged));
        check_sum(merged, 3);
        OK(MPI_Comm_free(&merged));
        OK(MPI_Comm_free(&copy));
    }
    OK(MPI_Comm_free(&inter));
    OK(MPI_Comm_free(&half));
}

static int raised, raised_on_it;
static MPI_Comm small;
static void count_errors(MPI_Comm* comm, int* code, ...) {
    raised_on_it += *comm == small && class_of(*code) == MPI_ERR_RANK;
    ++raised;
}

/* Its first size - 1 ranks. */
static void small_topology(int is_graph) {
    int dims[1] = {size - 1}, periods[1] = {1}, index[64], edges[64], ranks, me;
    for (int i = 0; i < size - 1; ++i) index[i] = i + 1, edges[i] = (i + 1) % (size - 1);
    if (is_graph)
        OK(MPI_Graph_create(MPI_COMM_WORLD, size - 1, index, edges, 0, &small));
    else
        OK(MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &small));
    if (small == MPI_COMM_NULL) return;
    OK(MPI_Comm_size(small, &ranks));
    OK(MPI_Comm_rank(small, &me));
    CHECK(ranks == size - 1 && me == rank, "rank %d of %d in a topology on all ranks but the last", me,
          ranks);
    int in = -1;
    OK(MPI_Sendrecv(&me, 1, MPI_INT, (me + 1) % ranks, 1, &in, 1, MPI_INT, (me + ranks - 1) % ranks, 1, small,
                    MPI_STATUS_IGNORE));
    CHECK(in == (me + ranks - 1) % ranks, "a message in it brought %d", in);
    check_sum(small, 5);
    MPI_Errhandler handler;
    OK(MPI_Comm_create_errhandler(count_errors, &handler));
    OK(MPI_Comm_set_errhandler(small, handler));
    raised = raised_on_it = 0;
    const int code =
        sealed ? MPI_Send(&me, 1, MPI_INT, ranks, 1, small) : MPI_ERR_RANK; /* MPICH 5 takes it */
    CHECK(code != MPI_SUCCESS, "a message to a rank that is not there");
    CHECK(!sealed || (raised == 1 && raised_on_it == 1), "its error handler was called %d times", raised);
    OK(MPI_Errhandler_free(&handler));
    OK(MPI_Comm_free(&small));
}

#ifdef MPICH_NUMVERSION
static void* make_and_use(void* parent) {
    MPI_Comm made, part;
    for (int i = 0; i < ROUNDS; ++i) {
        OK(MPI_Comm_dup(*(MPI_Comm*)parent, &made));
        check_sum(made, i);
        OK(MPI_Comm_split(made, rank % 2, 0, &part));
        check_sum(part, i + 1);
        OK(MPI_Comm_free(&made));
        check_sum(part, i + 2);
        OK(MPI_Comm_free(&part));
    }
    return NULL;
}

/* Two threads make communicators of two, in no order between them. */
static void threads(void) {
    if (threads_given != MPI_THREAD_MULTIPLE) return;
    MPI_Comm copy, parents[2];
    pthread_t thread;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &copy));
    for (int i = 0; i < 2; ++i) OK(MPI_Comm_dup(copy, &parents[i]));
    CHECK(pthread_create(&thread, NULL, make_and_use, &parents[0]) == 0, "no thread to be had");
    make_and_use(&parents[1]);
    CHECK(pthread_join(thread, NULL) == 0, "the thread did not end");
    for (int i = 0; i < 2; ++i) OK(MPI_Comm_free(&parents[i]));
    OK(MPI_Comm_free(&copy));
}
#endif

void rule_shared_shadows(void) {
    family();
    worn();
    for (int round = 0; sealed && round < 4; ++round) overlapped();
    crossed(0);
    if (size % 2 == 0) crossed(1);
    alone_on_one_side(0);
    alone_on_one_side(size - 1);
    if (size > 2) {
        small_topology(0);
        small_topology(1);
    }
#ifdef MPICH_NUMVERSION
    threads();
#endif
    OK(MPI_Barrier(MPI_COMM_WORLD));
}
