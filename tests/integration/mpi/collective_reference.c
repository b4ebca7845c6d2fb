#include "collective_calls.h"

enum { TAG = 1 };

static unsigned char* block(const struct side* side, int i) {
    return side->buffer + MARGIN + side->far_places[i];
}

struct exchange {
    MPI_Comm comm;
    MPI_Request requests[4 * 64];
    int count;
};
static void send_to(struct exchange* e, const struct side* side, int i, int to, int tag) {
    OK(MPI_Isend(block(side, i), side->counts[i], side->types[i], to, tag, e->comm,
                 &e->requests[e->count++]));
}
static void receive_from(struct exchange* e, const struct side* side, int i, int from, int tag) {
    OK(MPI_Irecv(block(side, i), side->counts[i], side->types[i], from, tag, e->comm,
                 &e->requests[e->count++]));
}
static void finish(struct exchange* e) {
    OK(MPI_Waitall(e->count, e->requests, MPI_STATUSES_IGNORE));
}

/* The ranks that messages go to: the other group's, or all but this one's. */
static int others(const struct shape* shape) {
    return shape->remote ? shape->remote : shape->size;
}
static int is_me(const struct shape* shape, int i) {
    return !shape->remote && i == shape->me;
}

void refer_bcast(struct call* call, int root, int is_root) {
    struct exchange e = {.comm = call->shape->comm};
    for (int i = 0; is_root && i < others(call->shape); ++i)
        if (!is_me(call->shape, i)) send_to(&e, &call->send, 0, i, TAG);
    if (!is_root) receive_from(&e, &call->receive, 0, root, TAG);
    finish(&e);
}

void refer_rooted(struct call* call, int gathers, int root, int is_root) {
    struct exchange e = {.comm = call->shape->comm};
    struct side *all = gathers ? &call->receive : &call->send, *own = gathers ? &call->send : &call->receive;
    int alone = call->shape->remote && is_root; /* has no block of its own */
    for (int i = 0; is_root && i < others(call->shape); ++i) {
        if (!alone && i == call->shape->me && !own->buffer) continue; /* in place */
        if (gathers)
            receive_from(&e, all, i, i, TAG);
        else
            send_to(&e, all, i, i, TAG);
    }
    if (!alone && own->buffer) {
        if (gathers)
            send_to(&e, own, 0, root, TAG);
        else
            receive_from(&e, own, 0, root, TAG);
    }
    finish(&e);
}

void refer_all_to_all(struct call* call) {
    struct exchange e = {.comm = call->shape->comm};
    enum procedure which = call->operation.procedure;
    int gathers = which == ALLGATHER || which == ALLGATHERV, in_place = !call->send.buffer;
    struct side from = in_place ? call->receive : call->send;
    if (in_place) {
        from.buffer = memory(from.room);
        memcpy(from.buffer, call->receive.buffer, from.room);
    }
    for (int i = 0; i < others(call->shape); ++i) {
        if (in_place && i == call->shape->me) continue;
        receive_from(&e, &call->receive, i, i, TAG);
        send_to(&e, &from, !gathers ? i : in_place ? call->shape->me : 0, i, TAG);
    }
    finish(&e);
    if (in_place) free(from.buffer);
}

/* Of several edges between two ranks the first one listed there meets the first one listed here, but in a
 * grid, where what goes in the positive direction comes from the negative one. */
void refer_neighbors(struct call* call) {
    const struct shape* shape = call->shape;
    struct exchange e = {.comm = shape->comm};
    int gathers = call->operation.procedure <= NEIGHBOR_ALLGATHERV, kind;
    OK(MPI_Topo_test(shape->comm, &kind));
    for (int i = 0; i < shape->indegree; ++i)
        receive_from(&e, &call->receive, i, shape->sources[i], kind == MPI_CART ? i : 0);
    for (int i = 0; i < shape->outdegree; ++i)
        send_to(&e, &call->send, gathers ? 0 : i, shape->destinations[i], kind == MPI_CART ? i ^ 1 : 0);
    finish(&e);
}

/* Everybody has everybody's vector, and goes through them in the order of ranks. */
void refer_reduction(struct call* call, int root, int is_root, int sum, int count, int before) {
    const struct shape* shape = call->shape;
    enum procedure which = call->operation.procedure;
    struct exchange e = {.comm = shape->comm};
    struct side own = call->send.buffer ? call->send : call->receive;
    int to_root = which == REDUCE, sends = call->send.buffer != NULL || !shape->remote;
    own.counts[0] = sum;
    MPI_Datatype type = own.types[0];
    MPI_Aint step = extent_of(type) * sum;
    int n = others(shape), last = which == SCAN ? shape->me : which == EXSCAN ? shape->me - 1 : n - 1;
    int receives = !to_root || is_root;
    unsigned char* vectors = memory((size_t)(step * n));
    for (int i = 0; receives && i < n; ++i)
        OK(MPI_Irecv(vectors + step * i, sum, type, i, TAG, shape->comm, &e.requests[e.count++]));
    for (int i = 0; sends && i < n; ++i)
        if (!to_root || i == root) send_to(&e, &own, 0, i, TAG);
    finish(&e);
    for (int i = last - 1; receives && i >= 0; --i)
        OK(MPI_Reduce_local(vectors + step * i, vectors + step * last, sum, type, call->op));
    if (receives && last >= 0)
        OK(MPI_Sendrecv(vectors + step * last + extent_of(type) * before, count, type, 0, TAG,
                        call->receive.buffer + MARGIN, count, type, 0, TAG, MPI_COMM_SELF,
                        MPI_STATUS_IGNORE));
    free(vectors);
}
