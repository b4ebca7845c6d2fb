/* Collectives: blocking, non-blocking and persistent, on one group, between two, and among neighbours. */
#include "program.h"

enum kind {
    BARRIER,
    BCAST,
    GATHER,
    GATHERV,
    SCATTER,
    SCATTERV,
    ALLGATHER,
    ALLGATHERV,
    ALLTOALL,
    ALLTOALLV,
    ALLTOALLW,
    REDUCE,
    ALLREDUCE,
    SCAN,
    EXSCAN,
    REDUCE_SCATTER_BLOCK,
    REDUCE_SCATTER,
    NEIGHBOR_ALLGATHER,
    NEIGHBOR_ALLGATHERV,
    NEIGHBOR_ALLTOALL,
    NEIGHBOR_ALLTOALLV,
    NEIGHBOR_ALLTOALLW,
    KINDS
};
static const char* const names[KINDS] = {"barrier",
                                         "bcast",
                                         "gather",
                                         "gatherv",
                                         "scatter",
                                         "scatterv",
                                         "allgather",
                                         "allgatherv",
                                         "alltoall",
                                         "alltoallv",
                                         "alltoallw",
                                         "reduce",
                                         "allreduce",
                                         "scan",
                                         "exscan",
                                         "reduce_scatter_block",
                                         "reduce_scatter",
                                         "neighbor_allgather",
                                         "neighbor_allgatherv",
                                         "neighbor_alltoall",
                                         "neighbor_alltoallv",
                                         "neighbor_alltoallw"};
enum mode { BLOCKING, STARTING, PERSISTENT };

/* The arguments of a call, of whatever kind. */
struct each {
    int* small;
    MPI_Count* large;
};
struct places {
    int* small;
    MPI_Aint* large;
};
struct call {
    enum kind kind;
    MPI_Comm comm;
    int root;
    MPI_Op op;
    const void* from;
    void* to;
    long from_count, to_count;
    MPI_Datatype from_type, to_type, *from_types, *to_types;
    struct each from_counts, to_counts;
    struct places from_places, to_places;
    MPI_Aint *from_bytes, *to_bytes;
};

#define FROM c->from, (COUNT)c->from_count, c->from_type
#define TO c->to, (COUNT)c->to_count, c->to_type
#define FROM_EACH c->from, COUNTS(c->from_counts), PLACES(c->from_places)
#define TO_EACH c->to, COUNTS(c->to_counts), PLACES(c->to_places)
#define REDUCTION c->from, c->to, (COUNT)c->to_count, c->to_type, c->op

#define NAME(procedure) procedure
#define COUNT int
#define COUNTS(array) (array).small
#define PLACES(array) (array).small
#define CALLER call_small
#ifdef HAVE_MPI_4
#define PERSISTENT_CALL(Blocking, ...) OK(MPI_##Blocking##_init, (__VA_ARGS__, MPI_INFO_NULL, &it->request))
#else
#define PERSISTENT_CALL(Blocking, ...) (void)0
#endif
#include "collective_calls.inc"
#ifdef HAVE_COUNT_VARIANTS
#undef NAME
#undef COUNT
#undef COUNTS
#undef PLACES
#undef CALLER
#undef PERSISTENT_CALL
#define NAME(procedure) procedure##_c
#define COUNT MPI_Count
#define COUNTS(array) (array).large
#define PLACES(array) (array).large
#define CALLER call_large
#define PERSISTENT_CALL(Blocking, ...) OK(MPI_##Blocking##_init_c, (__VA_ARGS__, MPI_INFO_NULL, &it->request))
#include "collective_calls.inc"
#endif

/* ---- who has how much for whom, in blocks: as many units as both types can count */
struct shape {
    const struct step* step;
    const struct comm* comm;
    const struct type *from, *to;
    long unit, blocks;                         /* units of a block; blocks of one rank for another */
    int in_place, varying, receivers, senders; /* senders: whose blocks this rank receives */
    int sends_to[MOST_RANKS], gets_from[MOST_RANKS];
    struct slot* slot;
};

static long common_multiple(long a, long b) {
    long x = a, y = b;
    while (y) {
        long rest = x % y;
        x = y, y = rest;
    }
    return a / x * b;
}

/* Blocks that rank a (of the group `side`) has for rank b. */
static long blocks_for(const struct shape* shape, int side, int a, int b) {
    if (!shape->varying) return shape->blocks;
    if (shape->in_place && a > b) {
        int swap = a;
        a = b, b = swap;
    }
    return (long)(mix3((uint64_t)value(shape->step, "seed", 0), (uint64_t)side, (uint64_t)(a * 64 + b + 1)) %
                  (uint64_t)(shape->blocks + 1));
}

/* What this rank has for others (or gets from them), each block at a place of its own. */
static void lay_out_each(struct shape* shape, int n, const int* ranks, int outgoing, struct call* call) {
    const struct type* type = outgoing ? shape->from : shape->to;
    struct each* counts = outgoing ? &call->from_counts : &call->to_counts;
    struct places* places = outgoing ? &call->from_places : &call->to_places;
    MPI_Aint** bytes = outgoing ? &call->from_bytes : &call->to_bytes;
    MPI_Datatype** list = outgoing ? &call->from_types : &call->to_types;
    counts->small = slot_memory(shape->slot, (size_t)n * sizeof(int));
    counts->large = slot_memory(shape->slot, (size_t)n * sizeof(MPI_Count));
    places->small = slot_memory(shape->slot, (size_t)n * sizeof(int));
    places->large = slot_memory(shape->slot, (size_t)n * sizeof(MPI_Aint));
    *bytes = slot_memory(shape->slot, (size_t)n * sizeof(MPI_Aint));
    *list = slot_memory(shape->slot, (size_t)n * sizeof(MPI_Datatype));
    long apart = shape->blocks * shape->unit / type->units + (shape->varying ? 1 : 0);
    int side = outgoing ? shape->comm->side : 1 - shape->comm->side;
    for (int i = 0; i < n; ++i) {
        long blocks = outgoing ? blocks_for(shape, side, shape->comm->rank, ranks[i])
                               : blocks_for(shape, shape->comm->inter ? side : shape->comm->side, ranks[i],
                                            shape->comm->rank);
        counts->small[i] = (int)(blocks * shape->unit / type->units);
        counts->large[i] = counts->small[i];
        places->large[i] = apart * i;
        places->small[i] = (int)places->large[i];
        (*bytes)[i] = places->large[i] * type->extent;
        (*list)[i] = type->type;
    }
    /* MPI_Alltoallw counts places in bytes. */
    if (call->kind == ALLTOALLW)
        for (int i = 0; i < n; ++i) {
            places->small[i] = (int)(*bytes)[i];
            places->large[i] = (*bytes)[i];
        }
}

static long elements(const struct shape* shape, const struct type* type, long blocks) {
    return blocks * shape->unit / type->units;
}

/* ---- neighbours */
static int twice_the_same(const int* ranks, int n) {
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < i; ++j)
            if (ranks[i] == ranks[j] && ranks[i] != MPI_PROC_NULL) return 1;
    return 0;
}

static int find_neighbours(struct shape* shape) {
    MPI_Comm comm = shape->comm->comm;
    int kind, n = 0, weighted, weights[MOST_RANKS], other_weights[MOST_RANKS];
    OK(MPI_Topo_test, (comm, &kind));
    if (kind == MPI_CART) {
        OK(MPI_Cartdim_get, (comm, &n));
        for (int i = 0; i < n; ++i)
            OK(MPI_Cart_shift, (comm, i, 1, &shape->sends_to[2 * i], &shape->sends_to[2 * i + 1]));
        shape->senders = shape->receivers = 2 * n;
        memcpy(shape->gets_from, shape->sends_to, sizeof shape->gets_from);
    } else if (kind == MPI_GRAPH) {
        OK(MPI_Graph_neighbors_count, (comm, shape->comm->rank, &n));
        OK(MPI_Graph_neighbors, (comm, shape->comm->rank, n, shape->sends_to));
        shape->senders = shape->receivers = n;
        memcpy(shape->gets_from, shape->sends_to, sizeof shape->gets_from);
    } else if (kind == MPI_DIST_GRAPH) {
        OK(MPI_Dist_graph_neighbors_count, (comm, &shape->senders, &shape->receivers, &weighted));
        OK(MPI_Dist_graph_neighbors, (comm, shape->senders, shape->gets_from, weights, shape->receivers,
                                      shape->sends_to, other_weights));
    } else {
        return 0;
    }
    return 1;
}

/* ---- the arguments by kind */
static int is_reduction(enum kind kind) {
    return kind >= REDUCE && kind <= REDUCE_SCATTER;
}

static int is_varying(enum kind kind) {
    return kind == GATHERV || kind == SCATTERV || kind == ALLGATHERV || kind == ALLTOALLV ||
           kind == ALLTOALLW || kind == NEIGHBOR_ALLGATHERV || kind == NEIGHBOR_ALLTOALLV ||
           kind == NEIGHBOR_ALLTOALLW;
}

/* 1: this rank is the root, 0: it is not, -1: it takes no part (it is in the root's group). */
static int find_root(const struct shape* shape, struct call* call) {
    const struct comm* comm = shape->comm;
    int root = (int)value(shape->step, "root", 0);
    if (!comm->inter) {
        call->root = root % comm->size;
        return call->root == comm->rank;
    }
    int side = (int)value(shape->step, "side", 0);
    if (comm->side != side) {
        call->root = root % comm->remote;
        return 0;
    }
    int mine = root % comm->size == comm->rank;
    call->root = mine ? MPI_ROOT : MPI_PROC_NULL;
    return mine ? 1 : -1;
}

static void outgoing(struct pending* it, struct call* call, const struct type* type, long count) {
    make_buffer(&it->out, type, count);
    fill_buffer(&it->out, it->out_seed);
    call->from = it->out.start;
    call->from_count = count;
    call->from_type = type->type;
}

static void incoming(struct pending* it, struct call* call, const struct type* type, long room, long count) {
    make_buffer(&it->in, type, room);
    fill_buffer(&it->in, it->in_seed);
    call->to = it->in.start;
    call->to_count = count;
    call->to_type = type->type;
}

/* Data that is there already: the send buffer is not used. */
static void take_in_place(struct pending* it, struct call* call) {
    free_buffer(&it->out);
    call->from = MPI_IN_PLACE;
    it->in_seed = it->out_seed;
    fill_buffer(&it->in, it->in_seed);
}

static void rooted(struct shape* shape, struct call* call, struct pending* it) {
    int root = find_root(shape, call), gathers = call->kind == GATHER || call->kind == GATHERV,
        n = shape->senders;
    long one_out = elements(shape, shape->from, shape->blocks),
         one_in = elements(shape, shape->to, shape->blocks);
    if (root < 0) return;
    if (call->kind == BCAST) {
        if (root) it->in_seed = it->out_seed;
        incoming(it, call, root || (shape->comm->rank & 1) ? shape->from : shape->to,
                 root || (shape->comm->rank & 1) ? one_out : one_in,
                 root || (shape->comm->rank & 1) ? one_out : one_in);
        return;
    }
    /* The blocks of all ranks, as the root has them: number i is that of rank i of the other side. */
    int side = shape->comm->inter ? (root ? 1 - shape->comm->side : shape->comm->side) : shape->comm->side;
    long mine = blocks_for(shape, side, shape->comm->rank, 63);
    if (root && shape->varying) {
        lay_out_each(shape, n, shape->gets_from, !gathers, call);
        struct each* counts = gathers ? &call->to_counts : &call->from_counts;
        const struct type* type = gathers ? shape->to : shape->from;
        for (int i = 0; i < n; ++i) {
            counts->small[i] = (int)elements(shape, type, blocks_for(shape, side, i, 63));
            counts->large[i] = counts->small[i];
        }
    }
    int has_one = !root || !shape->comm->inter; /* the root of the other group has no block of its own */
    if (gathers) {
        if (has_one) outgoing(it, call, shape->from, elements(shape, shape->from, mine));
        if (root) incoming(it, call, shape->to, n * (one_in + 1), one_in);
        if (root && shape->in_place) take_in_place(it, call);
    } else {
        if (root) outgoing(it, call, shape->from, n * (one_out + 1));
        if (root) call->from_count = one_out;
        if (has_one)
            incoming(it, call, shape->to, elements(shape, shape->to, mine), elements(shape, shape->to, mine));
        if (root && shape->in_place) {
            free_buffer(&it->in);
            call->to = MPI_IN_PLACE;
        }
    }
}

static void exchanged(struct shape* shape, struct call* call, struct pending* it) {
    int all_same = call->kind == ALLGATHER || call->kind == ALLGATHERV || call->kind == NEIGHBOR_ALLGATHER ||
                   call->kind == NEIGHBOR_ALLGATHERV;
    long one_out = elements(shape, shape->from, shape->blocks),
         one_in = elements(shape, shape->to, shape->blocks);
    lay_out_each(shape, shape->senders, shape->gets_from, 0, call);
    if (all_same) {
        int side = shape->comm->inter ? 1 - shape->comm->side : shape->comm->side;
        for (int i = 0; i < shape->senders && shape->varying; ++i) {
            call->to_counts.small[i] =
                (int)elements(shape, shape->to, blocks_for(shape, side, shape->gets_from[i], 63));
            call->to_counts.large[i] = call->to_counts.small[i];
        }
        outgoing(it, call, shape->from,
                 elements(shape, shape->from, blocks_for(shape, shape->comm->side, shape->comm->rank, 63)));
    } else {
        lay_out_each(shape, shape->receivers, shape->sends_to, 1, call);
        outgoing(it, call, shape->from, shape->receivers * (one_out + 1));
        call->from_count = one_out;
    }
    incoming(it, call, shape->to, shape->senders * (one_in + 1), one_in);
    if (shape->in_place) take_in_place(it, call);
}

static void reduced(struct shape* shape, struct call* call, struct pending* it) {
    const struct comm* comm = shape->comm;
    long n = elements(shape, shape->from, shape->blocks), total = n, result = n;
    int root = call->kind == REDUCE ? find_root(shape, call) : 1;
    if (root < 0) return;
    if (call->kind == REDUCE_SCATTER_BLOCK || call->kind == REDUCE_SCATTER) {
        result = comm->inter ? n * comm->remote : n;
        total = result * comm->size;
    }
    if (call->kind == REDUCE_SCATTER) {
        call->to_counts.small = slot_memory(shape->slot, (size_t)comm->size * sizeof(int));
        call->to_counts.large = slot_memory(shape->slot, (size_t)comm->size * sizeof(MPI_Count));
        for (int i = 0; i < comm->size; ++i)
            call->to_counts.small[i] = (int)(comm->size == 1 || i > 1 ? result
                                             : i == 0                 ? result - result / 2
                                                                      : result + result / 2);
        for (int i = 0; i < comm->size; ++i) call->to_counts.large[i] = call->to_counts.small[i];
        result = call->to_counts.small[comm->rank];
    }
    if (!(comm->inter && root && call->kind == REDUCE)) outgoing(it, call, shape->from, total);
    if (root) incoming(it, call, shape->from, shape->in_place && total > result ? total : result, result);
    call->to_count = call->kind == REDUCE_SCATTER ? 0 : result;
    call->to_type = shape->from->type;
    if (shape->in_place && root) take_in_place(it, call);
    /* Of a longer input in place, what is behind the result. */
    if (shape->in_place && root && total > result) it->open = total - result;
}

/* ---- the step */
extern MPI_Op op_of(const struct step* step, const struct type* type);

static int prepare(struct shape* shape, const struct step* step, enum kind kind) {
    memset(shape, 0, sizeof *shape);
    shape->step = step;
    shape->comm = comm_of(step, "comm");
    shape->from = type_of(step, "stype");
    shape->to = type_of(step, "rtype");
    if (!shape->comm || !shape->from || !shape->to || shape->from->class != shape->to->class) return 0;
    if (shape->comm->inter && (kind == SCAN || kind == EXSCAN || kind >= NEIGHBOR_ALLGATHER)) return 0;
    if (is_reduction(kind)) shape->to = shape->from;
    shape->unit = common_multiple(shape->from->units, shape->to->units);
    shape->blocks = (value(step, "units", 1) + shape->unit - 1) / shape->unit;
    shape->varying = is_varying(kind);
    shape->in_place = value(step, "in_place", 0) && !shape->comm->inter && kind < NEIGHBOR_ALLGATHER;
    shape->senders = shape->receivers = shape->comm->remote;
    for (int i = 0; i < shape->comm->remote; ++i) shape->gets_from[i] = shape->sends_to[i] = i;
    /* Open MPI's gathering of one layout into another loses data. */
    if (ON_OPEN_MPI && kind >= GATHER && kind <= ALLGATHERV) shape->to = shape->from;
    if (kind < NEIGHBOR_ALLGATHER) return 1;
    if (!find_neighbours(shape)) return 0;
    /* Which of two messages between the same neighbours is which differs from form to form. */
    return kind < NEIGHBOR_ALLTOALL || (!twice_the_same(shape->sends_to, shape->receivers) &&
                                        !twice_the_same(shape->gets_from, shape->senders));
}

static enum mode mode_of(const struct step* step) {
    if (is(step, "mode", "starting")) return STARTING;
#ifdef HAVE_MPI_4
    if (is(step, "mode", "persistent")) return PERSISTENT;
#else
    if (is(step, "mode", "persistent")) return STARTING;
#endif
    return BLOCKING;
}

static void run(const struct step* step, enum kind kind) {
    struct shape shape;
    /* What is not significant is checked by some libraries. */
    static char nothing[2][8];
    struct call call = {.kind = kind,
                        .op = MPI_OP_NULL,
                        .from = nothing[0],
                        .to = nothing[1],
                        .from_type = MPI_BYTE,
                        .to_type = MPI_BYTE};
    int fits = prepare(&shape, step, kind);
    if (fits && is_reduction(kind)) fits = (call.op = op_of(step, shape.from)) != MPI_OP_NULL;
    if (fits && is_reduction(kind)) call.from_type = call.to_type = shape.from->type;
    /* MPICH and Open MPI 4 mix up the order of operations that do not commute. */
    if (fits && kind == REDUCE_SCATTER && (ON_MPICH || ON_OPEN_MPI == 4)) {
        int commutes = 0;
        OK(MPI_Op_commutative, (call.op, &commutes));
        fits = commutes;
    }
    if (!fits || !(shape.slot = slot_for(step))) {
        say(" skipped");
        return;
    }
    enum mode mode = mode_of(step);
    /* Open MPI: who has no part in one of these does not count it, and waits for ever in the next one between
     * the groups. */
    int rooted_one = (kind >= BCAST && kind <= SCATTERV) || kind == REDUCE;
    if (ON_OPEN_MPI && shape.comm->inter && rooted_one) mode = BLOCKING;
    /* MPICH's sends other data than the blocking one; MPICH 4's persistent one that of before the start. */
    if (ON_MPICH && shape.comm->inter && kind == BCAST) mode = BLOCKING;
    if (ON_MPICH == 4 && mode == PERSISTENT && (kind == GATHER || shape.in_place)) mode = STARTING;
    /* Neither do its persistent ones between groups, nor does its non-blocking MPI_Alltoall in place, give
     * what they should. */
    if (ON_MPICH == 4 && shape.comm->inter && mode == PERSISTENT) mode = STARTING;
    if (ON_MPICH == 4 && kind == ALLTOALL && shape.in_place) mode = BLOCKING;
    /* MPICH 4's blocking reductions between groups give wrong results when one has more than two ranks. */
    if (ON_MPICH == 4 && shape.comm->inter && is_reduction(kind) && mode == BLOCKING &&
        shape.comm->size + shape.comm->remote > 3)
        mode = STARTING;
    struct pending* it = add_pending(shape.slot);
    it->out_seed =
        mix3((uint64_t)value(step, "seed", 0), 1, (uint64_t)(shape.comm->rank + 100 * shape.comm->side));
    it->in_seed = mix3((uint64_t)value(step, "seed", 0), 2, (uint64_t)shape.comm->rank);
    call.comm = shape.comm->comm;
    if (kind != BARRIER) {
        if (kind <= SCATTERV)
            rooted(&shape, &call, it);
        else if (is_reduction(kind))
            reduced(&shape, &call, it);
        else
            exchanged(&shape, &call, it);
    }
#ifdef HAVE_COUNT_VARIANTS
    if (value(step, "large", 0))
        call_large(&call, mode, it);
    else
#endif
        call_small(&call, mode, it);
    shape.slot->persistent = mode == PERSISTENT;
    if (mode == PERSISTENT) shape.slot->active = 0;
    settle(shape.slot);
}

int collective_step(const struct step* step) {
    if (!verb_is(step, "coll")) return 0;
    for (int kind = 0; kind < KINDS; ++kind)
        if (is(step, "kind", names[kind])) {
            run(step, (enum kind)kind);
            return 1;
        }
    give_up("line %d: no collective of this kind", step->number);
}
