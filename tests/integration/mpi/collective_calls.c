#include "collective_calls.h"

const char* const procedure_names[] = {"Barrier",
                                       "Bcast",
                                       "Gather",
                                       "Gatherv",
                                       "Scatter",
                                       "Scatterv",
                                       "Allgather",
                                       "Allgatherv",
                                       "Alltoall",
                                       "Alltoallv",
                                       "Alltoallw",
                                       "Reduce",
                                       "Allreduce",
                                       "Reduce_scatter",
                                       "Reduce_scatter_block",
                                       "Scan",
                                       "Exscan",
                                       "Neighbor_allgather",
                                       "Neighbor_allgatherv",
                                       "Neighbor_alltoall",
                                       "Neighbor_alltoallv",
                                       "Neighbor_alltoallw"};

uint64_t mix(uint64_t a, uint64_t b, uint64_t c) {
    uint64_t z = a * 0x9e3779b97f4a7c15u + b * 0xbf58476d1ce4e5b9u + c * 0x94d049bb133111ebu + 1;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* --- Element types of data that is only moved: `unit` numbers of a basic type in several layouts --- */

enum layout { BASIC, CONTIGUOUS, STRIDED, BACKWARDS, TAILED, RECORD, LAYOUTS };

static MPI_Datatype basic(int base) {
    return base == 0 ? MPI_BYTE : base == 1 ? MPI_INT32_T : MPI_DOUBLE;
}
static int basic_size(int base) {
    return base == 0 ? 1 : base == 1 ? 4 : 8;
}

static MPI_Datatype keep_type(struct side* side, MPI_Datatype type) {
    OK(MPI_Type_commit(&type));
    side->own_types[side->made++] = type;
    return type;
}

static MPI_Datatype resized(MPI_Datatype whole, MPI_Aint extent) {
    MPI_Datatype type;
    OK(MPI_Type_create_resized(whole, 0, extent, &type));
    OK(MPI_Type_free(&whole));
    return type;
}

static MPI_Datatype in_layout(struct side* side, int layout, int base, int unit) {
    MPI_Datatype of = basic(base), type;
    int n = basic_size(base), places[8], lengths[] = {1, unit - 1};
    MPI_Aint parts[] = {n, 3 * n};
    MPI_Datatype both[] = {of, of};
    for (int i = 0; i < unit; ++i) places[i] = 2 * (unit - 1 - i);
    switch (layout) {
        case BASIC:
            return of;
        case CONTIGUOUS:
            OK(MPI_Type_contiguous(unit, of, &type));
            return keep_type(side, type);
        case STRIDED:
            OK(MPI_Type_vector(unit, 1, 2, of, &type));
            return keep_type(side, type);
        case BACKWARDS:
            OK(MPI_Type_create_indexed_block(unit, 1, places, of, &type));
            return keep_type(side, type);
        case TAILED:
            OK(MPI_Type_contiguous(unit, of, &type));
            return keep_type(side, resized(type, (unit + 1) * n));
        default:
            OK(MPI_Type_create_struct(2, lengths, parts, both, &type));
            return keep_type(side, resized(type, (unit + 3) * n));
    }
}

/* Inside a node the MPI library's own collectives run, and they are not up to one type here and another
 * there: MPICH and Open MPI cut long blocks into whole elements of this rank's type. */
static int draw_layout(const struct call* call, int world, int which) {
    if (!call->shape->spans_nodes) world = which = 0;
    uint64_t dice = mix(call->operation.id, (uint64_t)world, 77 + (uint64_t)which);
    return dice % 2 ? BASIC : (int)(dice / 2 % LAYOUTS);
}

/* --- Reductions --- */

enum { FIRST_PAIR = 5, FIRST_OWN = 8, AFFINE = 9, AFFINE_WIDE = 10 };

int is_reduction(enum procedure procedure) {
    return procedure >= REDUCE && procedure <= EXSCAN;
}

static void multiply(void* in, void* inout, int* n, MPI_Datatype* type) {
    (void)type;
    for (int i = 0; i < *n; ++i) ((uint32_t*)inout)[i] *= ((uint32_t*)in)[i];
}

/* x -> a x + b under composition: associative, not commutative. */
static void compose(const uint32_t* first, uint32_t* second, int at_b) {
    second[at_b] += second[0] * first[at_b];
    second[0] *= first[0];
}
static void compose_all(void* in, void* inout, int* n, MPI_Datatype* type) {
    (void)type;
    for (int i = 0; i < *n; ++i) compose((uint32_t*)in + 2 * i, (uint32_t*)inout + 2 * i, 1);
}
static void compose_wide(void* in, void* inout, int* n, MPI_Datatype* type) {
    (void)type;
    for (int i = 0; i < *n; ++i) compose((uint32_t*)in + 4 * i, (uint32_t*)inout + 4 * i, 2);
}

static int element_size(int op) {
    static const int bytes[OPS] = {4, 8, 4, 1, 8, 8, 12, 12, 4, 8, 8, 8};
    return bytes[op];
}

static MPI_Datatype reduced_type(struct side* side, int op) {
    MPI_Datatype type;
    switch (op) {
        case 0:
        case 8:
            return MPI_UINT32_T;
        case 1:
        case 4:
        case 11:
            return op == 4 ? MPI_INT64_T : MPI_UINT64_T;
        case 2:
            return MPI_INT32_T;
        case 3:
            return MPI_BYTE;
        case 5:
            return MPI_2INT;
        case 6:
            return MPI_DOUBLE_INT;
        case 7:
            return MPI_LONG_INT;
        case AFFINE:
            OK(MPI_Type_contiguous(2, MPI_UINT32_T, &type));
            return keep_type(side, type);
        default:
            OK(MPI_Type_vector(2, 1, 2, MPI_UINT32_T, &type));
            return keep_type(side, resized(type, 16));
    }
}

static void make_op(struct call* call) {
    static const int own_commutes[] = {1, 0, 0};
    static MPI_User_function* const functions[] = {multiply, compose_all, compose_wide};
    const MPI_Op known[] = {MPI_SUM, MPI_SUM, MPI_MAX, MPI_BXOR, MPI_MIN, MPI_MINLOC, MPI_MAXLOC, MPI_MINLOC};
    int op = call->operation.op;
    call->own_op = op >= FIRST_OWN && op < OPS - 1;
    if (op == OPS - 1)
        call->op = MPI_BXOR;
    else if (call->own_op)
        OK(MPI_Op_create(functions[op - FIRST_OWN], own_commutes[op - FIRST_OWN], &call->op));
    else
        call->op = known[op];
}

/* Pairs get values that often tie, and no bytes in their gaps: a library may copy these or not. */
static void tidy_pairs(struct call* call, struct side* side, int values) {
    int op = call->operation.op;
    if (!side->buffer || !is_reduction(call->operation.procedure) || op < FIRST_PAIR || op >= FIRST_OWN)
        return;
    int size = op == FIRST_PAIR ? 8 : 16, second = op == FIRST_PAIR ? 4 : 8;
    for (size_t at = MARGIN; at + (size_t)size <= side->room - MARGIN; at += (size_t)size) {
        unsigned char* pair = side->buffer + at;
        if (size == 16) memset(pair + 12, 0, 4);
        if (!values) continue;
        int value = pair[0] % 16, place = pair[1];
        double real = value;
        long whole = value;
        memcpy(pair, op == 5 ? (void*)&value : op == 6 ? (void*)&real : (void*)&whole, (size_t)second);
        memcpy(pair + second, &place, 4);
    }
}

/* --- Sides --- */

MPI_Aint extent_of(MPI_Datatype type) {
    MPI_Aint lower, extent;
    OK(MPI_Type_get_extent(type, &lower, &extent));
    return extent;
}

/* `units[i]`: of block i. */
static void make_side(struct call* call, struct side* side, int which, enum style style, int blocks,
                      const int* units) {
    const struct operation* operation = &call->operation;
    int reduces = is_reduction(operation->procedure), unit = operation->unit, order[64];
    int layout = reduces ? -1 : draw_layout(call, rank, which);
    side->blocks = blocks;
    side->type = reduces ? reduced_type(side, operation->op)
                         : in_layout(side, layout, operation->base, operation->unit);
    for (int i = 0; i < blocks; ++i) order[i] = i;
    for (int i = blocks - 1; i > 0; --i) {
        int j =
            style == EQUAL
                ? i
                : (int)(mix(operation->id, (uint64_t)(rank + 64 * which), (uint64_t)i) % (uint64_t)(i + 1));
        int other = order[i];
        order[i] = order[j], order[j] = other;
    }
    MPI_Aint at = 0;
    for (int k = 0; k < blocks; ++k) {
        int i = order[k], mine = layout;
        side->types[i] = side->type;
        if (style == TYPED) {
            mine = draw_layout(call, rank * 64 + i, which);
            side->types[i] = in_layout(side, mine, operation->base, unit);
        }
        MPI_Aint extent = extent_of(side->types[i]);
        side->counts[i] = units[i] * (mine == BASIC ? unit : 1);
        side->far_places[i] = at;
        side->places[i] = (int)(style == TYPED ? at : at / extent);
        at += extent * side->counts[i];
        if (style != EQUAL) {
            MPI_Aint gap = (MPI_Aint)(mix(operation->id, (uint64_t)(rank + which), (uint64_t)i + 99) % 4);
            at += style == TYPED ? gap * 8 : gap * extent;
        }
        if (style == TYPED) at = (at + 7) / 8 * 8;
    }
    side->each =
        units[0] * (layout == BASIC ? unit : 1); /* also without blocks: Open MPI compares both sides */
    side->room = (size_t)at + 2 * MARGIN;
    side->buffer = memory(side->room);
}

static void fill_side(struct call* call, struct side* side, int which) {
    if (!side->buffer) return;
    fill(side->buffer, side->room,
         mix(call->operation.id, (uint64_t)(rank * 4 + which), (uint64_t)call->start + 1000));
    tidy_pairs(call, side, 1);
}

void refill(struct call* call) {
    fill_side(call, &call->send, 0);
    fill_side(call, &call->receive, 1);
    if (call->copy) memcpy(call->copy, call->receive.buffer, call->receive.room);
}

static void free_types(struct side* side) {
    for (int i = 0; i < side->made; ++i) OK(MPI_Type_free(&side->own_types[i]));
    side->made = 0;
}

/* --- How much each rank sends to each: world ranks name them --- */

static int vary(int n, uint64_t dice) {
    switch (dice % 4) {
        case 0:
            return 0;
        case 1:
            return n;
        case 2:
            return (int)(dice / 4 % (uint64_t)(n + 1));
        default:
            return n + (int)(dice / 4 % 7);
    }
}

static int units_between(const struct operation* operation, int from, int to) {
    int element = is_reduction(operation->procedure) ? element_size(operation->op)
                                                     : operation->unit * basic_size(operation->base);
    int n = operation->bytes / element;
    uint64_t id = operation->id;
    switch (operation->procedure) {
        case GATHERV:
        case ALLGATHERV:
        case NEIGHBOR_ALLGATHERV:
            return vary(n, mix(id, (uint64_t)from, 5));
        case SCATTERV:
        case REDUCE_SCATTER:
            return vary(n, mix(id, (uint64_t)to, 6));
        case ALLTOALLV:
        case ALLTOALLW:
        case NEIGHBOR_ALLTOALLV:
        case NEIGHBOR_ALLTOALLW:
            if (operation->in_place && from > to) return units_between(operation, to, from);
            return vary(n, mix(id, (uint64_t)from, 7 + (uint64_t)to));
        default:
            return n;
    }
}

/* --- The calls --- */

#ifdef HAVE_PERSISTENT_COLLECTIVES
#define INIT(name, ...) OK(MPI_##name##_init(__VA_ARGS__, comm, MPI_INFO_NULL, &call->request))
#else
#define INIT(name, ...) fail(__FILE__, __LINE__, "this MPI has no persistent collectives")
#endif
#define CALL(name, lower, ...)                                                                        \
    do {                                                                                              \
        if (call->operation.form == BLOCKING) OK(MPI_##name(__VA_ARGS__, comm));                      \
        if (call->operation.form == NONBLOCKING) OK(MPI_I##lower(__VA_ARGS__, comm, &call->request)); \
        if (call->operation.form == PERSISTENT) INIT(name, __VA_ARGS__);                              \
    } while (0)

struct arguments {
    const void* send;
    void* receive;
};

static struct arguments arguments_of(const struct call* call) {
    struct arguments a = {call->send.buffer ? call->send.buffer + MARGIN : NULL,
                          call->receive.buffer ? call->receive.buffer + MARGIN : NULL};
    return a;
}

static void barrier(struct call* call, MPI_Comm comm) {
    if (call->operation.form == BLOCKING || call->operation.form == REFERENCE) OK(MPI_Barrier(comm));
    if (call->operation.form == NONBLOCKING) OK(MPI_Ibarrier(comm, &call->request));
#ifdef HAVE_PERSISTENT_COLLECTIVES
    if (call->operation.form == PERSISTENT) OK(MPI_Barrier_init(comm, MPI_INFO_NULL, &call->request));
#endif
}

static void bcast(struct call* call, MPI_Comm comm, int root, int is_root, int takes_part) {
    struct side* side = is_root ? &call->send : &call->receive;
    int n = units_between(&call->operation, 0, 0);
    if (takes_part) make_side(call, side, is_root, EQUAL, 1, &n);
    refill(call);
    if (call->operation.form == REFERENCE) {
        if (takes_part) refer_bcast(call, root, is_root);
        return;
    }
    struct arguments a = arguments_of(call);
    CALL(Bcast, bcast, is_root ? (void*)(uintptr_t)a.send : a.receive, side->each,
         takes_part ? side->type : MPI_BYTE, root);
}

/* The blocks of a rooted collective at the root, one for each of `count` ranks; `own`: what others have. */
static void rooted(struct call* call, MPI_Comm comm, int root, int is_root, int takes_part) {
    const struct operation* operation = &call->operation;
    const struct shape* shape = call->shape;
    enum procedure which = operation->procedure;
    int gathers = which == GATHER || which == GATHERV, v = which == GATHERV || which == SCATTERV;
    struct side *all = gathers ? &call->receive : &call->send, *own = gathers ? &call->send : &call->receive;
    int count = shape->remote ? shape->remote : shape->size, units[64];
    const int* others = shape->remote ? shape->remote_world : shape->world;
    int in_place = operation->in_place && is_root && !shape->remote;
    for (int i = 0; i < count; ++i) units[i] = units_between(operation, others[i], others[i]);
    if (is_root) make_side(call, all, 2, v ? PLACED : EQUAL, count, units);
    if (takes_part && !in_place && !(is_root && shape->remote)) {
        int mine = units_between(operation, rank, rank);
        make_side(call, own, 3, EQUAL, 1, &mine);
    }
    refill(call);
    if (operation->form == REFERENCE) {
        if (takes_part) refer_rooted(call, gathers, root, is_root);
        return;
    }
    struct arguments a = arguments_of(call);
    MPI_Datatype all_type = is_root ? all->type : MPI_DATATYPE_NULL,
                 own_type = own->buffer ? own->type : MPI_BYTE;
    if (!takes_part || (shape->remote && !is_root)) all_type = MPI_BYTE;
    const void* out = in_place && gathers ? MPI_IN_PLACE : a.send;
    void* in = in_place && !gathers ? MPI_IN_PLACE : a.receive;
    if (!is_root && all_type == MPI_DATATYPE_NULL) all_type = MPI_BYTE;
    if (which == GATHER) CALL(Gather, gather, out, own->each, own_type, in, all->each, all_type, root);
    if (which == GATHERV)
        CALL(Gatherv, gatherv, out, own->each, own_type, in, all->counts, all->places, all_type, root);
    if (which == SCATTER) CALL(Scatter, scatter, out, all->each, all_type, in, own->each, own_type, root);
    if (which == SCATTERV)
        CALL(Scatterv, scatterv, out, all->counts, all->places, all_type, in, own->each, own_type, root);
}

static void all_to_all(struct call* call, MPI_Comm comm) {
    const struct operation* operation = &call->operation;
    const struct shape* shape = call->shape;
    enum procedure which = operation->procedure;
    int count = shape->remote ? shape->remote : shape->size, out_units[64], in_units[64];
    int gathers = which == ALLGATHER || which == ALLGATHERV;
    const int* others = shape->remote ? shape->remote_world : shape->world;
    int in_place = operation->in_place && !shape->remote;
    enum style style = which == ALLTOALLW                          ? TYPED
                       : which == ALLTOALLV || which == ALLGATHERV ? PLACED
                                                                   : EQUAL;
    for (int i = 0; i < count; ++i) {
        in_units[i] = units_between(operation, others[i], rank);
        out_units[i] = units_between(operation, rank, others[i]);
    }
    make_side(call, &call->receive, 1, style, count, in_units);
    if (!in_place) make_side(call, &call->send, 0, gathers ? EQUAL : style, gathers ? 1 : count, out_units);
    refill(call);
    if (operation->form == REFERENCE) {
        refer_all_to_all(call);
        return;
    }
    struct arguments a = arguments_of(call);
    const struct side *s = &call->send, *r = &call->receive;
    const void* out = in_place ? MPI_IN_PLACE : a.send;
    MPI_Datatype out_type = in_place ? MPI_BYTE : s->type;
    switch (which) {
        case ALLGATHER:
            CALL(Allgather, allgather, out, s->each, out_type, a.receive, r->each, r->type);
            break;
        case ALLGATHERV:
            CALL(Allgatherv, allgatherv, out, s->each, out_type, a.receive, r->counts, r->places, r->type);
            break;
        case ALLTOALL:
            CALL(Alltoall, alltoall, out, s->each, out_type, a.receive, r->each, r->type);
            break;
        case ALLTOALLV:
            CALL(Alltoallv, alltoallv, out, s->counts, s->places, out_type, a.receive, r->counts, r->places,
                 r->type);
            break;
        default:
            CALL(Alltoallw, alltoallw, out, s->counts, s->places, in_place ? r->types : s->types, a.receive,
                 r->counts, r->places, r->types);
            break;
    }
}

static void neighbors(struct call* call, MPI_Comm comm) {
    const struct operation* operation = &call->operation;
    const struct shape* shape = call->shape;
    enum procedure which = operation->procedure;
    int gathers = which == NEIGHBOR_ALLGATHER || which == NEIGHBOR_ALLGATHERV, out_units[64], in_units[64];
    enum style style = which == NEIGHBOR_ALLTOALLW                                   ? TYPED
                       : which == NEIGHBOR_ALLTOALLV || which == NEIGHBOR_ALLGATHERV ? PLACED
                                                                                     : EQUAL;
    for (int i = 0; i < shape->indegree; ++i)
        in_units[i] =
            shape->sources[i] == MPI_PROC_NULL && style != EQUAL
                ? 1
                : units_between(operation, shape->sources[i] < 0 ? 0 : shape->world[shape->sources[i]], rank);
    for (int i = 0; i < shape->outdegree; ++i)
        out_units[i] =
            shape->destinations[i] == MPI_PROC_NULL && style != EQUAL
                ? 1
                : units_between(operation, rank,
                                shape->destinations[i] < 0 ? 0 : shape->world[shape->destinations[i]]);
    if (gathers || shape->outdegree == 0) out_units[0] = units_between(operation, rank, 0);
    if (shape->indegree == 0) in_units[0] = out_units[0];
    make_side(call, &call->receive, 1, style, shape->indegree, in_units);
    make_side(call, &call->send, 0, gathers ? EQUAL : style, gathers ? 1 : shape->outdegree, out_units);
    refill(call);
    if (operation->form == REFERENCE) {
        refer_neighbors(call);
        return;
    }
    struct arguments a = arguments_of(call);
    const struct side *s = &call->send, *r = &call->receive;
    switch (which) {
        case NEIGHBOR_ALLGATHER:
            CALL(Neighbor_allgather, neighbor_allgather, a.send, s->each, s->type, a.receive, r->each,
                 r->type);
            break;
        case NEIGHBOR_ALLGATHERV:
            CALL(Neighbor_allgatherv, neighbor_allgatherv, a.send, s->each, s->type, a.receive, r->counts,
                 r->places, r->type);
            break;
        case NEIGHBOR_ALLTOALL:
            CALL(Neighbor_alltoall, neighbor_alltoall, a.send, s->each, s->type, a.receive, r->each, r->type);
            break;
        case NEIGHBOR_ALLTOALLV:
            CALL(Neighbor_alltoallv, neighbor_alltoallv, a.send, s->counts, s->places, s->type, a.receive,
                 r->counts, r->places, r->type);
            break;
        default:
            CALL(Neighbor_alltoallw, neighbor_alltoallw, a.send, s->counts, s->far_places, s->types,
                 a.receive, r->counts, r->far_places, r->types);
            break;
    }
}

static void reduces(struct call* call, MPI_Comm comm, int root, int is_root, int takes_part) {
    const struct operation* operation = &call->operation;
    const struct shape* shape = call->shape;
    enum procedure which = operation->procedure;
    int n = units_between(operation, 0, 0), counts[64], sum = 0,
        scatters = which == REDUCE_SCATTER || which == REDUCE_SCATTER_BLOCK;
    int in_place = operation->in_place && !shape->remote && (which != REDUCE || is_root);
    struct side *s = &call->send, *r = &call->receive;
    if (scatters) { /* between groups both have as many elements altogether */
        for (int i = 0; i < shape->size; ++i) {
            counts[i] = which == REDUCE_SCATTER ? units_between(operation, 0, shape->world[i]) : n;
            if (shape->remote) counts[i] = n * shape->remote;
            sum += counts[i];
        }
        if (shape->remote && which == REDUCE_SCATTER &&
            shape->size > 1) { /* the first one gives all to the last */
            counts[shape->size - 1] += counts[0];
            counts[0] = 0;
        }
    } else {
        sum = n;
    }
    int result = scatters && !in_place ? counts[shape->me] : sum;
    int receives = which == REDUCE ? is_root : 1,
        sends = !in_place && !(which == REDUCE && shape->remote && is_root);
    if (takes_part && receives) make_side(call, r, 1, EQUAL, 1, &result);
    if (takes_part && sends) make_side(call, s, 0, EQUAL, 1, &sum);
    MPI_Datatype type = r->buffer ? r->type : s->buffer ? s->type : MPI_INT;
    if (takes_part)
        make_op(call);
    else
        call->op = MPI_SUM;
    call->undefined = which == EXSCAN && shape->me == 0;
    if (scatters && in_place && r->buffer) call->defined = (size_t)(counts[shape->me] * extent_of(type));
    refill(call);
    if (operation->form == REFERENCE) {
        int before = 0;
        for (int i = 0; scatters && i < shape->me; ++i) before += counts[i];
        if (takes_part) refer_reduction(call, root, is_root, sum, scatters ? counts[shape->me] : sum, before);
        return;
    }
    struct arguments a = arguments_of(call);
    const void* out = in_place ? MPI_IN_PLACE : a.send;
    if (!out) out = call; /* MPICH 4 wants an address also where it means nothing */
    /* MPICH copies a result to its place with memcpy, though they overlap when counts are unlike; MPICH 4.0
     * crashes in MPI_Reduce. */
    if (in_place && (which == REDUCE_SCATTER || which == REDUCE) && !shape->spans_nodes) {
        call->copy = memory(r->room);
        memcpy(call->copy, r->buffer, r->room);
        out = call->copy + MARGIN;
    }
    switch (which) {
        case REDUCE:
            CALL(Reduce, reduce, out, a.receive, sum, type, call->op, root);
            break;
        case ALLREDUCE:
            CALL(Allreduce, allreduce, out, a.receive, sum, type, call->op);
            break;
        case REDUCE_SCATTER:
            memcpy(call->receive.counts, counts, sizeof counts); /* stay until the end */
            CALL(Reduce_scatter, reduce_scatter, out, a.receive, call->receive.counts, type, call->op);
            break;
        case REDUCE_SCATTER_BLOCK:
            CALL(Reduce_scatter_block, reduce_scatter_block, out, a.receive, counts[0], type, call->op);
            break;
        case SCAN:
            CALL(Scan, scan, out, a.receive, sum, type, call->op);
            break;
        default:
            CALL(Exscan, exscan, out, a.receive, sum, type, call->op);
            break;
    }
}

void make_call(struct call* call, const struct operation* operation, const struct shape* shape, int start) {
    memset(call, 0, sizeof *call);
    call->start = start;
    call->operation = *operation;
    call->shape = shape;
    /* MPICH 5.0 corrupts the heap with operations that do not commute on types with gaps. */
    int scatters = operation->procedure == REDUCE_SCATTER || operation->procedure == REDUCE_SCATTER_BLOCK;
    if (scatters && operation->op == AFFINE_WIDE && !shape->spans_nodes) call->operation.op = AFFINE;
    operation = &call->operation;
    call->request = MPI_REQUEST_NULL;
    MPI_Comm comm = shape->comm;
    int first = operation->root_in_first, is_root, takes_part = 1, root;
    if (shape->remote) { /* of the group that has the root, the others stand by */
        int with_root = shape->first_group == first;
        root = (int)(operation->root % (unsigned)(with_root ? shape->size : shape->remote));
        is_root = with_root && shape->me == root;
        takes_part = !with_root || is_root;
        if (with_root) root = is_root ? MPI_ROOT : MPI_PROC_NULL;
    } else {
        root = (int)(operation->root % (unsigned)shape->size);
        is_root = shape->me == root;
    }
    /* Open MPI crashes when a communicator is freed under its collectives, so not inside a node. */
    int duplicate = operation->on_duplicate && shape->spans_nodes;
    if (duplicate) OK(MPI_Comm_dup(shape->comm, &comm));
    enum procedure which = operation->procedure;
    if (which == BARRIER)
        barrier(call, comm); /* no reference: nothing is delivered */
    else if (which == BCAST)
        bcast(call, comm, root, is_root, takes_part);
    else if (which <= SCATTERV)
        rooted(call, comm, root, is_root, takes_part);
    else if (which <= ALLTOALLW)
        all_to_all(call, comm);
    else if (which <= EXSCAN)
        reduces(call, comm, root, is_root, takes_part || which != REDUCE);
    else
        neighbors(call, comm);
    if (duplicate) OK(MPI_Comm_free(&comm));
    /* MPI keeps what it needs from now on. (MPICH and Open MPI forget types of persistent ones.) */
    int kept = operation->form != PERSISTENT || shape->spans_nodes;
    if (kept && mix(operation->id, 3, 3) % 2) {
        free_types(&call->send), free_types(&call->receive);
        if (call->own_op) OK(MPI_Op_free(&call->op));
        call->own_op = 0;
    }
}

static uint64_t hash(uint64_t h, const unsigned char* bytes, size_t n) {
    uint64_t word = 0;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        memcpy(&word, bytes + i, 8);
        h = (h ^ word) * 0x9e3779b97f4a7c15u;
        h ^= h >> 32;
    }
    word = 0;
    memcpy(&word, bytes + i, n - i);
    return (h ^ word) * 0x9e3779b97f4a7c15u;
}

uint64_t result_of(struct call* call) {
    uint64_t h = 0xcbf29ce484222325u;
    tidy_pairs(call, &call->receive, 0);
    if (call->send.buffer) h = hash(h, call->send.buffer, call->send.room);
    if (call->receive.buffer && !call->undefined)
        h = hash(h, call->receive.buffer, call->defined ? MARGIN + call->defined : call->receive.room);
    return h;
}

void free_call(struct call* call) {
    free_types(&call->send), free_types(&call->receive);
    if (call->own_op) OK(MPI_Op_free(&call->op));
    free(call->send.buffer), free(call->receive.buffer), free(call->copy);
    memset(call, 0, sizeof *call);
}
