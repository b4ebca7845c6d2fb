#include "collective_comms.h"

static void members(MPI_Group group, int n, int* world) {
    MPI_Group all;
    int ranks[MOST_RANKS];
    for (int i = 0; i < n; ++i) ranks[i] = i;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    OK(MPI_Group_translate_ranks(group, n, ranks, all, world));
    OK(MPI_Group_free(&all));
    OK(MPI_Group_free(&group));
}

static void add(struct shape* shape, const char* name, MPI_Comm comm) {
    *shape = (struct shape){.name = name, .comm = comm};
    if (comm == MPI_COMM_NULL) return;
    int between = 0;
    MPI_Group group;
    OK(MPI_Comm_rank(comm, &shape->me));
    OK(MPI_Comm_size(comm, &shape->size));
    OK(MPI_Comm_group(comm, &group));
    members(group, shape->size, shape->world);
    OK(MPI_Comm_test_inter(comm, &between));
    shape->spans_nodes = 1;
    if (!between) {
        MPI_Comm node;
        int here;
        OK(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
        OK(MPI_Comm_size(node, &here));
        OK(MPI_Comm_free(&node));
        shape->spans_nodes = here < shape->size;
        return;
    }
    OK(MPI_Comm_remote_size(comm, &shape->remote));
    OK(MPI_Comm_remote_group(comm, &group));
    members(group, shape->remote, shape->remote_world);
}

static void add_grid(struct shape* shape, const char* name, int dimensions, const int* sizes,
                     const int* periods) {
    MPI_Comm comm;
    OK(MPI_Cart_create(MPI_COMM_WORLD, dimensions, sizes, periods, 0, &comm));
    add(shape, name, comm);
    if (comm == MPI_COMM_NULL) return;
    shape->has_neighbors = 1;
    for (int d = 0; d < dimensions; ++d) {
        OK(MPI_Cart_shift(comm, d, 1, &shape->sources[2 * d], &shape->sources[2 * d + 1]));
        shape->indegree = shape->outdegree = 2 * (d + 1);
    }
    memcpy(shape->destinations, shape->sources, sizeof shape->sources);
}

/* A ring with spokes to rank 0, and loops. */
static void add_graph(struct shape* shape) {
    int index[MOST_RANKS], edges[5 * MOST_RANKS], n = 0;
    for (int i = 0; i < size; ++i) {
        int after = (i + 1) % size, before = (i + size - 1) % size;
        if (size > 1) edges[n++] = after;
        if (size > 2) edges[n++] = before;
        for (int j = 2; i == 0 && j < size - 1; ++j) edges[n++] = j;
        if (i > 1 && i < size - 1) edges[n++] = 0;
        if (i % 2) edges[n++] = i;
        index[i] = n;
    }
    MPI_Comm comm;
    OK(MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &comm));
    add(shape, "graph", comm);
    shape->has_neighbors = 1;
    OK(MPI_Graph_neighbors_count(comm, shape->me, &shape->indegree));
    OK(MPI_Graph_neighbors(comm, shape->me, shape->indegree, shape->sources));
    memcpy(shape->destinations, shape->sources, sizeof shape->sources);
    shape->outdegree = shape->indegree;
}

/* How many edges lead from one rank to another: 0 to 2. */
static int edges_between(int from, int to) {
    return (int)(mix(20261121, (uint64_t)from, (uint64_t)to) % 5) % 3;
}

static void shuffle(int* list, int n, uint64_t seed) {
    for (int i = n - 1; i > 0; --i) {
        int j = (int)(mix(seed, (uint64_t)i, 8) % (uint64_t)(i + 1)), other = list[i];
        list[i] = list[j], list[j] = other;
    }
}

static void add_dist_graph(struct shape* shape) {
    int in[MOST_RANKS], out[MOST_RANKS], indegree = 0, outdegree = 0;
    for (int i = 0; i < size; ++i) {
        for (int k = 0; k < edges_between(i, rank) && indegree < MOST_RANKS; ++k) in[indegree++] = i;
        for (int k = 0; k < edges_between(rank, i) && outdegree < MOST_RANKS; ++k) out[outdegree++] = i;
    }
    shuffle(in, indegree, (uint64_t)rank + 1), shuffle(out, outdegree, (uint64_t)rank + 1000);
    MPI_Comm comm;
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, indegree, in, MPI_UNWEIGHTED, outdegree, out,
                                      MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm));
    add(shape, "distributed-graph", comm);
    shape->has_neighbors = 1;
    shape->indegree = indegree, shape->outdegree = outdegree;
    memcpy(shape->sources, in, sizeof in), memcpy(shape->destinations, out, sizeof out);
}

/* Two groups, neither of them a node, and the two merged with the second first. */
static void add_groups(struct shape* between, struct shape* merged) {
    MPI_Comm half, comm;
    int second = rank % 2;
    if (size == 1) {
        add(between, "groups", MPI_COMM_NULL), add(merged, "merged-groups", MPI_COMM_NULL);
        return;
    }
    OK(MPI_Comm_split(MPI_COMM_WORLD, second, -rank, &half));
    /* The leaders are the last ones of the halves, that is ranks 0 and 1. */
    int last;
    OK(MPI_Comm_size(half, &last));
    OK(MPI_Intercomm_create(half, last - 1, MPI_COMM_WORLD, second ? 0 : 1, 9, &comm));
    add(between, "groups", comm);
    between->first_group = !second;
    OK(MPI_Intercomm_merge(comm, !second, &comm));
    add(merged, "merged-groups", comm);
    OK(MPI_Comm_free(&half));
}

static void add_split(struct shape* shape, const char* name, int color, int key) {
    MPI_Comm comm;
    OK(MPI_Comm_split(MPI_COMM_WORLD, color, key, &comm));
    add(shape, name, comm);
}

void make_shapes(struct shape shapes[SHAPES]) {
    MPI_Comm comm, node;
    int index, wide = size > 3 ? 2 : size, grid[2] = {0, 0}, some[2] = {1, 0}, line[2] = {0, 1},
               both[2] = {1, 1};
    CHECK(size <= MOST_RANKS, "more ranks than this program has room for");
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    add(&shapes[0], "world", comm);
    add_split(&shapes[1], "reversed", 0, -rank);
    add_split(&shapes[2], "rows", rank / wide, rank);
    add_split(&shapes[3], "columns", rank % wide, -rank);
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
    add(&shapes[4], "node", node);
    OK(MPI_Comm_rank(node, &index));
    add_split(&shapes[5], "one-of-each-node", index, rank);
    OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
    add(&shapes[6], "self", comm);
    OK(MPI_Dims_create(size, 2, grid));
    add_grid(&shapes[7], "grid", 2, grid, some);
    line[0] = size, line[1] = 1;
    add_grid(&shapes[8], "ring", 2, line, both);
    add_graph(&shapes[9]);
    add_dist_graph(&shapes[10]);
    add_groups(&shapes[11], &shapes[12]);
    add_split(&shapes[13], "all-but-one", rank == size / 2 ? MPI_UNDEFINED : 0, (rank * 7) % size);
    OK(MPI_Comm_dup(shapes[2].comm, &comm));
    add(&shapes[14], "duplicate-of-rows", comm);
}

void free_shapes(struct shape shapes[SHAPES]) {
    for (int i = 0; i < SHAPES; ++i)
        if (shapes[i].comm != MPI_COMM_NULL) OK(MPI_Comm_free(&shapes[i].comm));
}
