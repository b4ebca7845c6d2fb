/* Makes a communicator in every way, with and without liar.c below, on 4 ranks of 2 nodes. Each rank says
 * "rank R CASE: right" ("rank R CASE lied: ..." while the liar acts) when a communicator came out that has
 * the ranks, in the order, that it must have; "OTHER ..." when it has not; "error ..." when none came out;
 * "none" when none was due. Arguments: "lie", and the one case to run. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#pragma weak liar_lie
void liar_lie(const char* procedure, int nth, int topology);

static int rank, size;
static MPI_Comm world, node, grid, half, inter; /* parents; errors are returned on all */
static MPI_Group everyone, backwards, first_three;

/* What must come out: world ranks by rank (of the remote group for an inter-communicator). */
static int expected[8], count;
#define EXPECT(...)                                    \
    do {                                               \
        const int ranks_[] = {__VA_ARGS__};            \
        count = (int)(sizeof ranks_ / sizeof *ranks_); \
        memcpy(expected, ranks_, sizeof ranks_);       \
    } while (0)

static int dup(MPI_Comm* made) {
    EXPECT(0, 1, 2, 3);
    return MPI_Comm_dup(world, made);
}
static int dup_with_info(MPI_Comm* made) {
    EXPECT(0, 1, 2, 3);
    return MPI_Comm_dup_with_info(world, MPI_INFO_NULL, made);
}
/* Open MPI has the handle as soon as MPI_Comm_idup returns: a program that uses it after the error gets another one. */
static int unusable_after(int code, MPI_Comm* made) {
#ifdef OPEN_MPI
    int sum, error_class = MPI_SUCCESS;
    if (code == MPI_SUCCESS) return code;
    MPI_Comm_set_errhandler(*made, MPI_ERRORS_RETURN);
    MPI_Error_class(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, *made), &error_class);
    if (error_class != MPI_SUCCESS) *made = MPI_COMM_NULL;
#else
    (void)made;
#endif
    return code;
}

static int idup_of(MPI_Comm comm, MPI_Comm* made) {
    MPI_Request request;
    int code = MPI_Comm_idup(comm, made, &request);
    return code == MPI_SUCCESS ? unusable_after(MPI_Wait(&request, MPI_STATUS_IGNORE), made) : code;
}
static int idup(MPI_Comm* made) {
    EXPECT(0, 1, 2, 3);
    return idup_of(world, made);
}
/* A duplicate's duplicate gets few of the world's blocks of tags and uses them up. MPI_Comm_dup then gives it
 * another private communicator, MPI_Comm_idup blocks of the reserve. */
enum { OFTEN = 20 };
static int often(int (*make)(MPI_Comm, MPI_Comm*), MPI_Comm* made) {
    EXPECT(0, 1, 2, 3);
    MPI_Comm copy, worn;
    MPI_Comm_dup(world, &copy);
    MPI_Comm_dup(copy, &worn);
    int code = make(worn, made);
    for (int i = 1; i < OFTEN && code == MPI_SUCCESS; ++i) {
        MPI_Comm_free(made);
        code = make(worn, made);
    }
    MPI_Comm_free(&worn);
    MPI_Comm_free(&copy);
    return code;
}
static int dup_often(MPI_Comm* made) {
    return often(MPI_Comm_dup, made);
}
static int idup_often(MPI_Comm* made) {
    return often(idup_of, made);
}
static int idup_with_info(MPI_Comm* made) {
    EXPECT(0, 1, 2, 3);
    MPI_Request request;
    int code = MPI_Comm_idup_with_info(world, MPI_INFO_NULL, made, &request);
    return code == MPI_SUCCESS ? unusable_after(MPI_Wait(&request, MPI_STATUS_IGNORE), made) : code;
}
static int dup_in_node(MPI_Comm* made) {
    EXPECT(rank / 2 * 2, rank / 2 * 2 + 1);
    return MPI_Comm_dup(node, made);
}
static int create(MPI_Comm* made) {
    EXPECT(3, 2, 1, 0);
    return MPI_Comm_create(world, backwards, made);
}
static int create_group(MPI_Comm* made) {
    EXPECT(0, 1, 2);
    *made = MPI_COMM_NULL;
    return rank == 3 ? MPI_SUCCESS : MPI_Comm_create_group(world, first_three, 7, made);
}
static int split(MPI_Comm* made) {
    EXPECT(rank % 2 + 2, rank % 2);
    return MPI_Comm_split(world, rank % 2, -rank, made);
}
static int split_type(MPI_Comm* made) {
    EXPECT(rank / 2 * 2, rank / 2 * 2 + 1);
    return MPI_Comm_split_type(world, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, made);
}
static int cart(MPI_Comm* made) {
    EXPECT(0, 1, 2, 3);
    int dims[2] = {2, 2}, periods[2] = {1, 0};
    return MPI_Cart_create(world, 2, dims, periods, 1, made);
}
static int small_cart(MPI_Comm* made) {
    EXPECT(0, 1, 2);
    int dims[1] = {3}, periods[1] = {1};
    return MPI_Cart_create(world, 1, dims, periods, 1, made);
}
static int cart_sub(MPI_Comm* made) {
    EXPECT(rank % 2, rank % 2 + 2);
    int remain[2] = {1, 0};
    return MPI_Cart_sub(grid, remain, made);
}
static int dup_of_cart(MPI_Comm* made) {
    EXPECT(0, 1, 2, 3);
    return MPI_Comm_dup(grid, made);
}
static int graph_of(int n, MPI_Comm* made) {
    int index[4], edges[4];
    for (int i = 0; i < n; ++i) index[i] = i + 1, edges[i] = (i + 1) % n;
    return MPI_Graph_create(world, n, index, edges, 1, made);
}
static int graph(MPI_Comm* made) {
    EXPECT(0, 1, 2, 3);
    return graph_of(4, made);
}
static int small_graph(MPI_Comm* made) {
    EXPECT(0, 1, 2);
    return graph_of(3, made);
}
static int dist_graph(MPI_Comm* made) {
    EXPECT(0, 1, 2, 3);
    int source = (rank + 2) % 4, degree = 1, destination = (rank + 3) % 4, weight = 1;
    return MPI_Dist_graph_create(world, 1, &source, &degree, &destination, &weight, MPI_INFO_NULL, 1, made);
}
static int adjacent(MPI_Comm* made) {
    EXPECT(0, 1, 2, 3);
    int from = (rank + 3) % 4, to = (rank + 1) % 4;
    return MPI_Dist_graph_create_adjacent(world, 1, &from, MPI_UNWEIGHTED, 1, &to, MPI_UNWEIGHTED,
                                          MPI_INFO_NULL, 1, made);
}
static int intercomm_create(MPI_Comm* made) {
    EXPECT(1 - rank % 2, 3 - rank % 2);
    return MPI_Intercomm_create(half, 0, world, 1 - rank % 2, 5, made);
}
static int merge(MPI_Comm* made) {
    EXPECT(1, 3, 0, 2);
    return MPI_Intercomm_merge(inter, rank % 2 == 0, made);
}
static int merge_alike(MPI_Comm* made) {
    EXPECT(0, 2, 1, 3);
    return MPI_Intercomm_merge(inter, 1, made);
}
static int dup_of_inter(MPI_Comm* made) {
    EXPECT(1 - rank % 2, 3 - rank % 2);
    return MPI_Comm_dup(inter, made);
}
static int create_of_inter(MPI_Comm* made) {
    EXPECT(3 - rank % 2, 1 - rank % 2);
    MPI_Group whole, reversed;
    int range[1][3] = {{1, 0, -1}};
    MPI_Comm_group(inter, &whole);
    MPI_Group_range_incl(whole, 1, range, &reversed);
    int code = MPI_Comm_create(inter, reversed, made);
    MPI_Group_free(&reversed);
    MPI_Group_free(&whole);
    return code;
}
static int split_of_inter(MPI_Comm* made) {
    EXPECT(3 - rank % 2, 1 - rank % 2);
    return MPI_Comm_split(inter, 0, -rank, made);
}

/* The lie: about which procedure below, on its nth call, about ranks (0) or topology (1). */
static const struct {
    const char* name;
    int (*make)(MPI_Comm*);
    const char* lie;
    int nth, topology;
} cases[] = {
    {"dup", dup, "Comm_dup", 1, 0},
    {"dup-private", dup_often, "Comm_create", 1, 0},
    {"dup_with_info", dup_with_info, "Comm_dup_with_info", 1, 0},
    {"idup", idup, "Comm_idup", 1, 0},
    {"idup-reserve", idup_often, "Comm_idup", 16, 0},
    {"idup_with_info", idup_with_info, "Comm_idup_with_info", 1, 0},
    {"dup-in-node", dup_in_node, "Comm_dup", 1, 0},
    {"create", create, "Comm_create", 1, 0},
    {"create_group", create_group, "Comm_create_group", 1, 0},
    {"create_group-private", create_group, "Comm_create", 1, 0},
    {"split", split, "Comm_create", 1, 0},
    {"split_type", split_type, "Comm_create", 1, 0},
    {"cart", cart, "Cart_create", 1, 0},
    {"cart-topology", cart, "Cart_create", 1, 1},
    {"cart-small", small_cart, "Cart_create", 1, 0},
    {"cart_sub", cart_sub, "Cart_sub", 1, 0},
    {"cart_sub-topology", cart_sub, "Cart_sub", 1, 1},
    {"cart-dup", dup_of_cart, "Comm_dup", 1, 0},
    {"graph", graph, "Graph_create", 1, 0},
    {"graph-topology", graph, "Graph_create", 1, 1},
    {"graph-small", small_graph, "Graph_create", 1, 0},
    {"dist_graph", dist_graph, "Dist_graph_create_adjacent", 1, 0},
    {"dist_graph-topology", dist_graph, "Dist_graph_create_adjacent", 1, 1},
    {"adjacent", adjacent, "Dist_graph_create_adjacent", 1, 0},
    {"adjacent-topology", adjacent, "Dist_graph_create_adjacent", 1, 1},
    {"intercomm_create", intercomm_create, "Intercomm_create", 1, 0},
    {"intercomm_create-private", intercomm_create, "Intercomm_merge", 1, 0},
    {"merge", merge, "Intercomm_merge", 1, 0},
    {"merge-alike", merge_alike, "Intercomm_merge", 1, 0},
    {"inter-dup", dup_of_inter, "Comm_dup", 1, 0},
    {"inter-create", create_of_inter, "Comm_create", 1, 0},
    {"inter-split", split_of_inter, "Intercomm_create", 1, 0},
};

static int lying;

static void say(const char* name, const char* text) {
    printf("rank %d %s%s: %s\n", rank, name, lying ? " lied" : "", text);
    fflush(stdout);
}

/* Gathers world ranks on the new communicator. */
static void use(const char* name, MPI_Comm made) {
    int got[8] = {-1, -1, -1, -1, -1, -1, -1, -1};
    char text[200] = "right";
    MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
    int code = MPI_Allgather(&rank, 1, MPI_INT, got, 1, MPI_INT, made);
    if (code != MPI_SUCCESS)
        snprintf(text, sizeof text, "OTHER: a collective on it failed");
    else if (memcmp(got, expected, (size_t)count * sizeof *got) != 0)
        snprintf(text, sizeof text, "OTHER ranks: %d %d %d %d", got[0], got[1], got[2], got[3]);
    say(name, text);
}

static void run(int i, int with_lie) {
    MPI_Comm made = MPI_COMM_NULL;
    lying = with_lie;
    if (liar_lie && with_lie) liar_lie(cases[i].lie, cases[i].nth, cases[i].topology);
    int code = cases[i].make(&made);
    if (liar_lie) liar_lie(NULL, 0, 0);
    if (code != MPI_SUCCESS) {
        char text[MPI_MAX_ERROR_STRING + 8] = "error ";
        int length;
        MPI_Error_string(code, text + 6, &length);
        if (made != MPI_COMM_NULL) strcpy(text, "OTHER: an error, and a communicator");
        say(cases[i].name, text);
    } else if (made == MPI_COMM_NULL) {
        say(cases[i].name, "none");
    } else {
        use(cases[i].name, made);
        if (!with_lie) MPI_Comm_free(&made);
    }
    MPI_Barrier(world);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != 4) MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    world = MPI_COMM_WORLD;
    int range[1][3] = {{3, 0, -1}}, three[1][3] = {{0, 2, 1}}, dims[2] = {2, 2}, periods[2] = {1, 0};
    MPI_Comm_group(world, &everyone);
    MPI_Group_range_incl(everyone, 1, range, &backwards);
    MPI_Group_range_incl(everyone, 1, three, &first_three);
    MPI_Comm_split_type(world, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Cart_create(world, 2, dims, periods, 0, &grid);
    MPI_Comm_split(world, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, world, 1 - rank % 2, 5, &inter);
    MPI_Comm parents[] = {node, grid, half, inter};
    for (int i = 0; i < 4; ++i) MPI_Comm_set_errhandler(parents[i], MPI_ERRORS_RETURN);
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); ++i)
        for (int with_lie = argc > 1 ? 1 : 0; with_lie >= 0; --with_lie)
            if (argc < 3 || strcmp(argv[2], cases[i].name) == 0) run(i, with_lie);
    if (rank == 0) puts("all done");
    MPI_Finalize();
    return 0;
}
