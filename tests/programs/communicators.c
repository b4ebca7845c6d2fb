/* Communicators of every constructor, between one group and two, and what MPI says of them. */
#include "program.h"

struct comm comms[MOST_COMMS];

struct comm* comm_of(const struct step* step, const char* key) {
    long id = value(step, key, 0);
    if (id < 0 || id >= MOST_COMMS) give_up("line %d: %s=%ld", step->number, key, id);
    struct comm* comm = &comms[id];
    if (id < 2) {
        comm->comm = id == 0 ? MPI_COMM_WORLD : MPI_COMM_SELF;
        if (!comm->size) look_at(comm);
    }
    return comm->size && !comm->pending ? comm : NULL;
}

/* size is 0 for what is not there. */
void look_at(struct comm* comm) {
    comm->size = comm->remote = comm->pending = comm->inter = 0;
    if (comm->comm == MPI_COMM_NULL) return;
    OK(MPI_Comm_test_inter, (comm->comm, &comm->inter));
    OK(MPI_Comm_rank, (comm->comm, &comm->rank));
    OK(MPI_Comm_size, (comm->comm, &comm->size));
    comm->remote = comm->size;
    if (comm->inter)
        OK(MPI_Comm_remote_size, (comm->comm, &comm->remote));
    else
        comm->side = 0;
}

static void say_members(const char* what, MPI_Group group) {
    MPI_Group world;
    int size = 0, own[MOST_RANKS], there[MOST_RANKS];
    OK(MPI_Group_size, (group, &size));
    for (int i = 0; i < size; ++i) own[i] = i;
    OK(MPI_Comm_group, (MPI_COMM_WORLD, &world));
    OK(MPI_Group_translate_ranks, (group, size, own, world, there));
    say(" %s=", what);
    for (int i = 0; i < size; ++i) say(i ? ",%d" : "%d", there[i]);
    OK(MPI_Group_free, (&world));
}

static void describe(const struct comm* comm) {
    if (!comm->size) {
        say(" none");
        return;
    }
    MPI_Group group;
    int topology = MPI_UNDEFINED;
    say(" rank=%d of %d,%d", comm->rank, comm->size, comm->remote);
    if (comm->group_is_wrong) return;
    OK(MPI_Comm_group, (comm->comm, &group));
    say_members("members", group);
    OK(MPI_Group_free, (&group));
    if (comm->inter) {
        OK(MPI_Comm_remote_group, (comm->comm, &group));
        say_members("others", group);
        OK(MPI_Group_free, (&group));
    } else {
        OK(MPI_Topo_test, (comm->comm, &topology));
        if (topology != MPI_UNDEFINED)
            say(" topology=%s", topology == MPI_CART ? "cart" : topology == MPI_GRAPH ? "graph" : "dist");
    }
}

/* ---- the constructors; each leaves MPI_COMM_NULL where it makes none */
static MPI_Info some_info(const struct step* step) {
    MPI_Info info = MPI_INFO_NULL;
    if (!value(step, "info", 0)) return info;
    OK(MPI_Info_create, (&info));
    OK(MPI_Info_set, (info, "mpi_assert_no_any_tag", "false"));
    return info;
}

static void free_info(MPI_Info info) {
    if (info != MPI_INFO_NULL) OK(MPI_Info_free, (&info));
}

static void make_duplicate(const struct step* step, struct comm* from, struct comm* to) {
    MPI_Info info = some_info(step);
    if (verb_is(step, "dup_with_info"))
        OK(MPI_Comm_dup_with_info, (from->comm, info, &to->comm));
    else if (verb_is(step, "dup"))
        OK(MPI_Comm_dup, (from->comm, &to->comm));
#ifdef HAVE_MPI_4
    else if (verb_is(step, "idup_with_info") &&
             !ON_OPEN_MPI) /* whose processes may then take part in other duplicates */
        to->pending = OK(MPI_Comm_idup_with_info, (from->comm, info, &to->comm, &to->request)) == MPI_SUCCESS;
#endif
    else
        to->pending = OK(MPI_Comm_idup, (from->comm, &to->comm, &to->request)) == MPI_SUCCESS;
    free_info(info);
}

void finish_duplicate(int id) {
    struct comm* comm = &comms[id];
    if (!comm->pending) return;
    MPI_Status status;
    OK(MPI_Wait, (&comm->request, &status));
    look_at(comm);
    say(" comm=%d", id);
    describe(comm);
}

static void make_split(const struct step* step, struct comm* from, struct comm* to) {
    int who = from->rank + 3 * from->side;
    int key = (int)entry(step, "keys", who, 0);
    if (verb_is(step, "split_type")) {
        OK(MPI_Comm_split_type, (from->comm, MPI_COMM_TYPE_SHARED, key, MPI_INFO_NULL, &to->comm));
        return;
    }
    int colour = (int)entry(step, "colours", who, 0);
    OK(MPI_Comm_split, (from->comm, colour < 0 ? MPI_UNDEFINED : colour, key, &to->comm));
}

/* Part of a communicator's group: the ranks that the step lists, in that order; those too large are left out.
 */
static MPI_Group chosen_group(const struct step* step, const struct comm* from, int* mine) {
    MPI_Group group, chosen;
    int ranks[MOST_RANKS], n = 0, seen[MOST_RANKS] = {0};
    for (int i = 0; i < entries(step, "ranks") && n < MOST_RANKS; ++i) {
        long rank = entry(step, "ranks", i, 0);
        if (rank < 0 || rank >= from->size || seen[rank]) continue;
        seen[rank] = 1;
        ranks[n++] = (int)rank;
    }
    *mine = seen[from->rank];
    if (ON_OPEN_MPI && from->inter) { /* it has the other group in another order than that group itself */
        n = 0;
        for (int rank = 0; rank < from->size; ++rank)
            if (seen[rank]) ranks[n++] = rank;
    }
    OK(MPI_Comm_group, (from->comm, &group));
    if (is(step, "by", "exclusion")) {
        OK(MPI_Group_excl, (group, n, ranks, &chosen));
        *mine = !*mine;
    } else {
        OK(MPI_Group_incl, (group, n, ranks, &chosen));
    }
    OK(MPI_Group_free, (&group));
    return chosen;
}

static void make_part(const struct step* step, struct comm* from, struct comm* to) {
    int mine;
    if (from->group_is_wrong) return;
    MPI_Group group = chosen_group(step, from, &mine);
    if (verb_is(step, "create"))
        OK(MPI_Comm_create, (from->comm, group, &to->comm));
    else if (mine && !from->inter)
        OK(MPI_Comm_create_group, (from->comm, group, (int)value(step, "tag", 1), &to->comm));
    OK(MPI_Group_free, (&group));
}

static void make_cart(const struct step* step, struct comm* from, struct comm* to) {
    int n = (int)value(step, "ndims", 1), dims[3] = {0, 0, 0}, periods[3];
    int left = (int)value(step, "leave", 0), used = from->size > left ? from->size - left : from->size;
    for (int i = 0; i < 3; ++i) periods[i] = (int)entry(step, "periods", i, 0);
    OK(MPI_Dims_create, (used, n, dims));
    OK(MPI_Cart_create, (from->comm, n, dims, periods, (int)value(step, "reorder", 0), &to->comm));
}

static void make_cart_part(const struct step* step, struct comm* from, struct comm* to) {
    int topology, n, remain[3];
    OK(MPI_Topo_test, (from->comm, &topology));
    if (topology != MPI_CART) return;
    OK(MPI_Cartdim_get, (from->comm, &n));
    if (n < 1 || n > 3) return;
    for (int i = 0; i < n; ++i) remain[i] = entry(step, "remain", i, 1) != 0;
    OK(MPI_Cart_sub, (from->comm, remain, &to->comm));
}

/* Neighbours of a symmetric graph: distances in both directions. */
static int graph_edges(const struct step* step, int rank, int size, int* edges) {
    int n = 0;
    for (int i = 0; i < entries(step, "distances"); ++i) {
        int distance = (int)(entry(step, "distances", i, 1) % size);
        int ends[2] = {(rank + distance) % size, (rank - distance + size) % size};
        for (int e = 0; e < 2; ++e) {
            int known = ends[e] == rank;
            for (int j = 0; j < n; ++j) known |= edges[j] == ends[e];
            if (!known) edges[n++] = ends[e];
        }
    }
    return n;
}

static void make_graph(const struct step* step, struct comm* from, struct comm* to) {
    int left = (int)value(step, "leave", 0), used = from->size > left ? from->size - left : from->size;
    int index[MOST_RANKS], edges[MOST_RANKS * 8], n = 0;
    for (int i = 0; i < used; ++i) index[i] = n += graph_edges(step, i, used, edges + n);
    OK(MPI_Graph_create, (from->comm, used, index, edges, (int)value(step, "reorder", 0), &to->comm));
}

/* Directed edges from each rank over the distances; with `by` other than 0 another rank names them. */
static void make_dist_graph(const struct step* step, struct comm* from, struct comm* to) {
    int n = entries(step, "distances"), size = from->size, in[8], out[8], weights[8];
    int namer = (from->rank + (int)value(step, "by", 0)) % size;
    if (n > 8) n = 8;
    for (int i = 0; i < n; ++i) {
        int distance = (int)(entry(step, "distances", i, 1) % size);
        out[i] = (from->rank + distance) % size;
        in[i] = (from->rank - distance + size) % size;
        weights[i] = i + 1;
    }
    int topology;
    OK(MPI_Topo_test, (from->comm, &topology));
    /* Open MPI 5 takes a graph on a grid for a grid, and crashes when it is asked for one. */
    int adjacent = verb_is(step, "dist_graph_adjacent") && (ON_OPEN_MPI != 5 || topology == MPI_UNDEFINED);
    int reorder =
        !ON_OPEN_MPI && value(step, "reorder", 0); /* Open MPI 4.1: ends the job where nodes have few slots */
    int weighted = (int)value(step, "weighted", 0);
    int* given = weighted ? weights : MPI_UNWEIGHTED;
    if (!adjacent && n > 1) n = 1; /* the order of several neighbours is open */
    MPI_Info info = some_info(step);
    if (adjacent) {
        OK(MPI_Dist_graph_create_adjacent,
           (from->comm, n, in, given, n, out, given, info, reorder, &to->comm));
    } else {
        for (int i = 0; i < n; ++i) out[i] = (namer + (int)(entry(step, "distances", i, 1) % size)) % size;
        OK(MPI_Dist_graph_create, (from->comm, 1, &namer, &n, out, given, info, reorder, &to->comm));
    }
    free_info(info);
}

/* The parent's halves become the two groups. */
static void make_inter(const struct step* step, struct comm* from, struct comm* to) {
    if (from->inter || from->size < 2) return;
    int cut = 1 + (int)(value(step, "cut", 1) % (from->size - 1));
    int side = is(step, "by", "parity") ? from->rank % 2 : from->rank >= cut;
    int leader = is(step, "by", "parity") ? 1 - side : (side ? 0 : cut);
    MPI_Comm half;
    OK(MPI_Comm_split, (from->comm, side, from->rank, &half));
    OK(MPI_Intercomm_create, (half, 0, from->comm, leader, (int)value(step, "tag", 1), &to->comm));
    OK(MPI_Comm_free, (&half));
    to->side = side;
}

static void make_merged(const struct step* step, struct comm* from, struct comm* to) {
    if (!from->inter) return;
    OK(MPI_Intercomm_merge, (from->comm, from->side ^ (value(step, "high", 0) != 0), &to->comm));
}

typedef void constructor(const struct step*, struct comm*, struct comm*);
static const struct {
    const char* verb;
    constructor* make;
    int intra; /* only within one group */
} constructors[] = {
    {"dup", make_duplicate, 0},
    {"dup_with_info", make_duplicate, 0},
    {"idup", make_duplicate, 0},
    {"idup_with_info", make_duplicate, 0},
    {"split", make_split, 0},
    {"split_type", make_split, 1},
    {"create", make_part, 0},
    {"create_group", make_part, 1},
    {"cart", make_cart, 1},
    {"cart_sub", make_cart_part, 1},
    {"graph", make_graph, 1},
    {"dist_graph", make_dist_graph, 1},
    {"dist_graph_adjacent", make_dist_graph, 1},
    {"intercomm", make_inter, 1},
    {"merge", make_merged, 0},
};

static void construct(const struct step* step, constructor* make, int intra) {
    struct comm *from = comm_of(step, "from"), *to = &comms[value(step, "comm", MOST_COMMS - 1)];
    if (!from || (intra && from->inter) || to->size || to->pending) {
        say(" skipped");
        return;
    }
    to->comm = MPI_COMM_NULL;
    to->side = from->side;
    /* MPICH 5: the group of a topology on fewer ranks than its parent has is the parent's. */
    to->attributes = from->attributes;
    to->group_is_wrong = from->group_is_wrong || (ON_MPICH >= 5 && value(step, "leave", 0));
    make(step, from, to);
    /* A duplicate that is under way and another constructor or a barrier wait for each other for ever. */
    if (ON_OPEN_MPI || ON_INTEL || ON_MPICH == 4) finish_duplicate((int)(to - comms));
    if (to->pending || to->size) return;
    look_at(to);
    describe(to);
    /* MPICH gives these no error handler of their own: MPI_COMM_WORLD's is called, which may be another
     * later. */
    if (ON_MPICH && to->size && (strstr(step->verb, "create") || verb_is(step, "merge")))
        OK(MPI_Comm_set_errhandler, (to->comm, MPI_ERRORS_RETURN));
}

static void say_topology(const struct comm* comm) {
    int kind, n, dims[3], periods[3], coords[3], list[64], weights[64], out[64], out_weights[64], m, weighted;
    OK(MPI_Topo_test, (comm->comm, &kind));
    if (kind == MPI_CART) {
        OK(MPI_Cartdim_get, (comm->comm, &n));
        if (n > 3) return;
        OK(MPI_Cart_get, (comm->comm, n, dims, periods, coords));
        for (int i = 0; i < n; ++i) {
            int from, to;
            OK(MPI_Cart_shift, (comm->comm, i, 1, &from, &to));
            say(" %d/%d/%d:%d,%d", dims[i], periods[i], coords[i], from, to);
        }
    } else if (kind == MPI_GRAPH) {
        OK(MPI_Graph_neighbors_count, (comm->comm, comm->rank, &n));
        OK(MPI_Graph_neighbors, (comm->comm, comm->rank, n, list));
        for (int i = 0; i < n; ++i) say(" %d", list[i]);
    } else if (kind == MPI_DIST_GRAPH) {
        OK(MPI_Dist_graph_neighbors_count, (comm->comm, &n, &m, &weighted));
        OK(MPI_Dist_graph_neighbors, (comm->comm, n, list, weights, m, out, out_weights));
        say(" weighted=%d in", weighted != 0);
        for (int i = 0; i < n; ++i) say(" %d/%d", list[i], weighted ? weights[i] : 0);
        say(" out");
        for (int i = 0; i < m; ++i) say(" %d/%d", out[i], weighted ? out_weights[i] : 0);
    }
}

static void end_communicator(const struct step* step) {
    struct comm* comm = comm_of(step, "comm");
    int disconnects = verb_is(step, "disconnect"), used = requests_on(value(step, "comm", 0));
    /* While requests use a communicator it is open when its attributes are deleted; and they could not be
     * started any more. */
    if (!comm || comm < comms + 2 || (used && (disconnects || comm->attributes))) {
        say(" skipped");
        return;
    }
    if (disconnects && ON_MPICH != 4) /* which hangs in it at times */
        OK(MPI_Comm_disconnect, (&comm->comm));
    else
        OK(MPI_Comm_free, (&comm->comm));
    say(" null=%d", comm->comm == MPI_COMM_NULL);
    memset(comm, 0, sizeof *comm);
}

static void ask(const struct step* step) {
    struct comm *comm = comm_of(step, "comm"), *other = comm_of(step, "with");
    if (!comm) {
        say(" skipped");
        return;
    }
    describe(comm);
    if (!comm->inter) say_topology(comm);
    if (!other || comm->group_is_wrong || other->group_is_wrong) return;
    int result;
    if (OK(MPI_Comm_compare, (comm->comm, other->comm, &result)) == MPI_SUCCESS)
        say(" compare=%s", result == MPI_IDENT       ? "ident"
                           : result == MPI_CONGRUENT ? "congruent"
                           : result == MPI_SIMILAR   ? "similar"
                                                     : "unequal");
}

static void name_it(const struct step* step) {
    struct comm* comm = comm_of(step, "comm");
    char name[MPI_MAX_OBJECT_NAME] = "", given[32];
    int length;
    if (!comm || comm < comms + 2) {
        say(" skipped");
        return;
    }
    OK(MPI_Comm_get_name, (comm->comm, name, &length));
    say(" `%s`", name);
    snprintf(given, sizeof given, "communicator %ld", value(step, "comm", 0));
    OK(MPI_Comm_set_name, (comm->comm, given));
    OK(MPI_Comm_get_name, (comm->comm, name, &length));
    say(" `%s`", name);
}

int communicator_step(const struct step* step) {
    for (size_t i = 0; i < sizeof constructors / sizeof *constructors; ++i) {
        if (!verb_is(step, constructors[i].verb)) continue;
        construct(step, constructors[i].make, constructors[i].intra);
        return 1;
    }
    if (verb_is(step, "free_comm") || verb_is(step, "disconnect"))
        end_communicator(step);
    else if (verb_is(step, "ask"))
        ask(step);
    else if (verb_is(step, "name"))
        name_it(step);
    else
        return 0;
    return 1;
}

void free_communicators(void) {
    for (int id = 2; id < MOST_COMMS; ++id) finish_duplicate(id);
    for (int id = 2; id < MOST_COMMS; ++id)
        if (comms[id].size) OK(MPI_Comm_free, (&comms[id].comm));
    memset(comms, 0, sizeof comms);
}
