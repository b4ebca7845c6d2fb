/* M11: distributed graphs whose edges any rank may name, parts of inter-communicators, and what collectives
 * on them give. */
#include "harness.h"
#include "rules.h"

/* Rank r names the edges from r+1 to r+2 and to r+3 (modulo size). */
static void graph(int weighted) {
    int source = (rank + 1) % size, degree = 2, ends[2] = {(rank + 2) % size, (rank + 3) % size},
        weights[2] = {7, 8};
    MPI_Comm comm;
    OK(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &source, &degree, ends, weighted ? weights : MPI_UNWEIGHTED,
                             MPI_INFO_NULL, 0, &comm));
    int in = 0, out = 0, has_weights = 0, from[2], to[2], from_weights[2], to_weights[2];
    OK(MPI_Dist_graph_neighbors_count(comm, &in, &out, &has_weights));
    CHECK(in == 2 && out == 2 && !has_weights == !weighted, "in %d out %d weighted %d", in, out, has_weights);
    if (in != 2 || out != 2) return;
    OK(MPI_Dist_graph_neighbors(comm, 2, from, from_weights, 2, to, to_weights));
    long own = 1000 + rank, got[2] = {0, 0};
    OK(MPI_Neighbor_allgather(&own, 1, MPI_LONG, got, 1, MPI_LONG, comm));
    for (int i = 0; i < 2; ++i) {
        CHECK(got[i] == 1000 + from[i], "neighbour %d gave %ld", from[i], got[i]);
        int distance = ((rank - from[i]) % size + size) % size;
        CHECK(!weighted || size < 3 || from_weights[i] == 6 + distance, "weight %d of distance %d",
              from_weights[i], distance);
    }
    OK(MPI_Comm_free(&comm));
}

/* Rank 0 sends to nobody: its send buffer says nothing. (Plain MPICH looks at it all the same.) */
static void sends_to_nobody(void) {
    int from[64], ends = 0, to = 0;
    if (!sealed || nodes == 1 || size > 64) return;
    for (int other = 1; rank == 0 && other < size; ++other) from[ends++] = other;
    MPI_Comm star;
    MPI_Datatype every_other;
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, ends, from, MPI_UNWEIGHTED, rank > 0, &to,
                                      MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &star));
    OK(MPI_Type_vector(2, 1, 2, MPI_INT, &every_other));
    OK(MPI_Type_commit(&every_other));
    int mine[3] = {rank, -1, 2 * rank}, got[128];
    OK(MPI_Neighbor_allgather(rank ? mine : NULL, 1, every_other, got, 2, MPI_INT, star));
    for (int i = 0; i < ends; ++i)
        CHECK(got[2 * i] == from[i] && got[2 * i + 1] == 2 * from[i], "rank %d gave %d and %d", from[i],
              got[2 * i], got[2 * i + 1]);
    OK(MPI_Type_free(&every_other));
    OK(MPI_Comm_free(&star));
}

static void parts_of_intercommunicator(void) {
    MPI_Comm half, inter, part;
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half));
    OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 5, &inter));
    int local, sum = 0, expected = 0;
    OK(MPI_Comm_rank(inter, &local));
    OK(MPI_Comm_split(inter, local % 2, -local, &part));
    for (int other = 0; other < size; ++other)
        if (other % 2 != rank % 2 && other / 2 % 2 == local % 2) expected += other;
    if (part != MPI_COMM_NULL) {
        OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, part));
        CHECK(sum == expected, "the other side's ranks add up to %d, not %d", sum, expected);
        OK(MPI_Comm_free(&part));
    }
    OK(MPI_Comm_free(&inter));
    OK(MPI_Comm_free(&half));
}

/* A graph on the ranks of a grid: another topology, not a second one. */
static int copies;
static int count_copy(MPI_Comm comm, int key, void* state, void* in, void* out, int* flag) {
    (void)comm, (void)key, (void)state, (void)in, (void)out;
    *flag = 0;
    ++copies;
    return MPI_SUCCESS;
}

static void graph_on_grid(void) {
    MPI_Comm grid, comm;
    int key;
    int dims = size, periodic = 1, source = rank, degree = 1, end = (rank + 1) % size, kind = MPI_UNDEFINED;
    OK(MPI_Cart_create(MPI_COMM_WORLD, 1, &dims, &periodic, 0, &grid));
    OK(MPI_Comm_create_keyval(count_copy, MPI_COMM_NULL_DELETE_FN, &key, NULL));
    OK(MPI_Comm_set_attr(grid, key, &key));
    copies = 0;
    OK(MPI_Dist_graph_create(grid, 1, &source, &degree, &end, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm));
    CHECK(copies == 0, "MPI_Dist_graph_create copies attributes");
    OK(MPI_Comm_free_keyval(&key));
    OK(MPI_Topo_test(comm, &kind));
    CHECK(kind == MPI_DIST_GRAPH, "a graph on a grid has topology %d", kind);
    OK(MPI_Comm_free(&comm));
    OK(MPI_Comm_free(&grid));
}

/* Part of a grid is a communicator like any other, whatever the library says of its topology. */
static void part_of_grid(void) {
    MPI_Comm grid, part;
    MPI_Group all, some;
    int dims = size, periodic = 0, last = size - 1, sum = 0;
    OK(MPI_Cart_create(MPI_COMM_WORLD, 1, &dims, &periodic, 0, &grid));
    OK(MPI_Comm_group(grid, &all));
    OK(MPI_Group_excl(all, size > 2, &last, &some));
    if (size < 3 || rank != last) {
        OK(MPI_Comm_create_group(grid, some, 3, &part));
        OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, part));
        int members = size > 2 ? size - 1 : size;
        CHECK(sum == members * (members - 1) / 2, "the ranks of a part of a grid add up to %d", sum);
        OK(MPI_Comm_free(&part));
    }
    OK(MPI_Group_free(&some));
    OK(MPI_Group_free(&all));
    OK(MPI_Comm_free(&grid));
}

void rule_graphs(void) {
    graph_on_grid();
    part_of_grid();
    graph(1);
    graph(0);
    sends_to_nobody();
    if (size > 1) parts_of_intercommunicator();
}
