/* M11 (and S2: a message belongs to its communicator): communicators made in every way that
 * intra-communicators are made carry messages of every size, and the same tag on two communicators is two
 * different things. */
#include "harness.h"
#include "rules.h"

/* A ring on comm with the same tag that all the other communicators use. */
static void ring(MPI_Comm comm, int n, const char* name) {
    if (comm == MPI_COMM_NULL) return;
    int me, ranks, tag = 400;
    OK(MPI_Comm_rank(comm, &me));
    OK(MPI_Comm_size(comm, &ranks));
    int to = (me + 1) % ranks, from = (me + ranks - 1) % ranks;
    unsigned char *out = memory((size_t)n), *in = memory((size_t)n);
    fill(out, (size_t)n, seed_of(me, to, ranks, n));
    MPI_Status status;
    int code = MPI_Sendrecv(out, n, MPI_BYTE, to, tag, in, n, MPI_BYTE, from, tag, comm, &status);
    CHECK(code == MPI_SUCCESS, "a message on a communicator from %s failed with class %d", name,
          class_of(code));
    CHECK_STATUS(&status, from, tag, n);
    CHECK_FILLED(in, (size_t)n, seed_of(from, me, ranks, n));
    OK(MPI_Barrier(comm));
    free(out), free(in);
}

static void use_and_free(MPI_Comm* comm, const char* name) {
    for (int i = 0; i < few_count; ++i) ring(*comm, few_sizes[i], name);
    if (*comm != MPI_COMM_NULL) OK(MPI_Comm_free(comm));
}

static void constructors(MPI_Comm parent) {
    int me, ranks;
    OK(MPI_Comm_rank(parent, &me));
    OK(MPI_Comm_size(parent, &ranks));
    MPI_Comm comm;
    OK(MPI_Comm_dup(parent, &comm));
    use_and_free(&comm, "MPI_Comm_dup");
    OK(MPI_Comm_dup_with_info(parent, MPI_INFO_NULL, &comm));
    use_and_free(&comm, "MPI_Comm_dup_with_info");
    MPI_Request request;
    OK(MPI_Comm_idup(parent, &comm, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    use_and_free(&comm, "MPI_Comm_idup");
    OK(MPI_Comm_split(parent, me % 2, -me, &comm));
    use_and_free(&comm, "MPI_Comm_split");
    OK(MPI_Comm_split(parent, me == 0 ? MPI_UNDEFINED : 1, me, &comm));
    CHECK((comm == MPI_COMM_NULL) == (me == 0), "MPI_UNDEFINED means no communicator");
    use_and_free(&comm, "MPI_Comm_split with MPI_UNDEFINED");
    OK(MPI_Comm_split_type(parent, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm));
    use_and_free(&comm, "MPI_Comm_split_type");
    MPI_Group all, some;
    int range[1][3] = {{ranks - 1, 0, -1}};
    OK(MPI_Comm_group(parent, &all));
    OK(MPI_Group_range_incl(all, 1, range, &some));
    OK(MPI_Comm_create(parent, some, &comm));
    use_and_free(&comm, "MPI_Comm_create");
    OK(MPI_Comm_create_group(parent, some, 77, &comm));
    use_and_free(&comm, "MPI_Comm_create_group");
    OK(MPI_Group_free(&some));
    int ends[2] = {0, ranks - 1};
    OK(MPI_Group_incl(all, ranks > 1 ? 2 : 1, ends, &some));
    if (me == 0 || me == ranks - 1) {
        OK(MPI_Comm_create_group(parent, some, 78, &comm));
        use_and_free(&comm, "MPI_Comm_create_group of two");
    }
    OK(MPI_Group_free(&some));
    OK(MPI_Group_free(&all));
}

/* A duplicate under way while another communicator is made. For want of tags, which run out in the fourth
 * generation, it gets a private communicator of its own, and no member may wait in the call that makes that
 * one for a member that is in another call. */
static void duplicate_under_way(void) {
    enum { GENERATIONS = 3 };
    MPI_Comm family[GENERATIONS], copy, grid;
    MPI_Request request;
    int dims[1] = {size - 1}, periods[1] = {0};
    for (int i = 0; i < GENERATIONS; ++i) OK(MPI_Comm_dup(i ? family[i - 1] : MPI_COMM_WORLD, &family[i]));
    OK(MPI_Comm_idup(family[GENERATIONS - 1], &copy, &request));
    OK(MPI_Cart_create(family[GENERATIONS - 1], 1, dims, periods, 0, &grid));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    use_and_free(&grid, "MPI_Cart_create while a duplicate is under way");
    use_and_free(&copy, "MPI_Comm_idup while another communicator was made");
    for (int i = 0; i < GENERATIONS; ++i) OK(MPI_Comm_free(&family[i]));
}

static void topologies(void) {
    int dims[1] = {0}, periods[1] = {1}, from, to, me;
    MPI_Comm cart;
    OK(MPI_Dims_create(size, 1, dims));
    OK(MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 1, &cart));
    OK(MPI_Comm_rank(cart, &me));
    OK(MPI_Cart_shift(cart, 0, 1, &from, &to));
    int out = me, in = -1;
    OK(MPI_Sendrecv(&out, 1, MPI_INT, to, 1, &in, 1, MPI_INT, from, 1, cart, MPI_STATUS_IGNORE));
    CHECK(in == from, "the Cartesian neighbour is %d, the message says %d", from, in);
    int remain[1] = {1};
    MPI_Comm sub;
    OK(MPI_Cart_sub(cart, remain, &sub));
    use_and_free(&sub, "MPI_Cart_sub");
    use_and_free(&cart, "MPI_Cart_create");
    int *index = memory((size_t)size * sizeof(int)), *edges = memory((size_t)size * sizeof(int));
    for (int i = 0; i < size; ++i) index[i] = i + 1, edges[i] = (i + 1) % size;
    MPI_Comm graph;
    OK(MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &graph));
    use_and_free(&graph, "MPI_Graph_create");
    free(index), free(edges);
}

/* Messages with one tag under way on three communicators at once, received in another order. */
static void apart(void) {
    enum { COMMS = 3 };
    MPI_Comm comms[COMMS] = {MPI_COMM_WORLD};
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]));
    OK(MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comms[2]));
    MPI_Request requests[COMMS];
    int out[COMMS], peers[COMMS];
    for (int i = 0; i < COMMS; ++i) {
        int me;
        OK(MPI_Comm_rank(comms[i], &me));
        peers[i] = size - 1 - me;
        out[i] = 10 * i + me;
        OK(MPI_Isend(&out[i], 1, MPI_INT, peers[i], 9, comms[i], &requests[i]));
    }
    for (int i = COMMS - 1; i >= 0; --i) {
        int in = -1;
        MPI_Status status;
        OK(MPI_Recv(&in, 1, MPI_INT, MPI_ANY_SOURCE, 9, comms[i], &status));
        CHECK(status.MPI_SOURCE == peers[i] && in == 10 * i + peers[i],
              "communicator %d delivered %d from %d", i, in, status.MPI_SOURCE);
    }
    OK(MPI_Waitall(COMMS, requests, MPI_STATUSES_IGNORE));
    OK(MPI_Comm_free(&comms[1]));
    OK(MPI_Comm_free(&comms[2]));
}

/* Many short-lived communicators, made and freed in different orders on top of each other. */
static void many(void) {
    MPI_Comm chain[8] = {MPI_COMM_WORLD};
    for (int i = 1; i < 8; ++i) OK(MPI_Comm_split(chain[i - 1], 0, i % 2 ? -rank : rank, &chain[i]));
    for (int i = 7; i > 0; --i) ring(chain[i], 100, "a chain of splits");
    for (int i = 1; i < 8; ++i) OK(MPI_Comm_free(&chain[i]));
    for (int i = 0; i < 10; ++i) {
        MPI_Comm comm;
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        use_and_free(&comm, "repeated MPI_Comm_dup");
    }
}

void rule_communicators(void) {
    constructors(MPI_COMM_WORLD);
    MPI_Comm reversed;
    OK(MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed));
    constructors(reversed);
    OK(MPI_Comm_free(&reversed));
    for (int i = 0; i < 8 && size > 1; ++i) duplicate_under_way();
    topologies();
    apart();
    many();
}
