#include "collective_slice.h"

#ifdef HAVE_PERSISTENT_COLLECTIVES
#define PERSIST(name, ...)                                                        \
    do {                                                                          \
        code = MPI_##name##_init(__VA_ARGS__, comm, MPI_INFO_NULL, &it->request); \
        if (code == MPI_SUCCESS) code = MPI_Start(&it->request);                  \
    } while (0)
#else
#define PERSIST(name, ...) fail(__FILE__, __LINE__, "this MPI has no persistent collectives")
#endif
#define CALL(name, lower, ...)                                                         \
    do {                                                                               \
        if (form == BLOCKING) code = MPI_##name(__VA_ARGS__, comm);                    \
        if (form == NONBLOCKING) code = MPI_I##lower(__VA_ARGS__, comm, &it->request); \
        if (form == PERSISTENT) PERSIST(name, __VA_ARGS__);                            \
    } while (0)

static int start(struct slice_call* it, enum form form, int root, int is_root) {
    const struct shape* shape = it->shape;
    MPI_Comm comm = shape->comm;
    const MPI_Datatype byte = MPI_BYTE;
    unsigned char *out = it->out, *in = it->in;
    int n = it->n, *counts = it->counts, *places = it->places, blocks = it->blocks, code = MPI_SUCCESS;
    switch (it->procedure) {
        case BARRIER:
            if (form == BLOCKING) code = MPI_Barrier(comm);
            if (form == NONBLOCKING) code = MPI_Ibarrier(comm, &it->request);
            break;
        case BCAST:
            if (is_root) memcpy(in, it->slice, (size_t)n);
            CALL(Bcast, bcast, in, n, byte, root);
            it->received = root == MPI_PROC_NULL ? 0 : 1;
            break;
        case GATHER:
            CALL(Gather, gather, out, n, byte, in, n, byte, root);
            it->received = is_root ? blocks : 0;
            break;
        case GATHERV:
            CALL(Gatherv, gatherv, out, n, byte, in, counts, places, byte, root);
            it->received = is_root ? blocks : 0;
            break;
        case SCATTER:
            CALL(Scatter, scatter, out, n, byte, in, n, byte, root);
            it->received = (shape->remote && is_root) || root == MPI_PROC_NULL ? 0 : 1;
            break;
        case SCATTERV:
            CALL(Scatterv, scatterv, out, counts, places, byte, in, n, byte, root);
            it->received = (shape->remote && is_root) || root == MPI_PROC_NULL ? 0 : 1;
            break;
        case ALLGATHER:
            CALL(Allgather, allgather, out, n, byte, in, n, byte);
            it->received = blocks;
            break;
        case ALLGATHERV:
            CALL(Allgatherv, allgatherv, out, n, byte, in, counts, places, byte);
            it->received = blocks;
            break;
        case ALLTOALL:
            CALL(Alltoall, alltoall, out, n, byte, in, n, byte);
            it->received = blocks;
            break;
        case ALLTOALLV:
            CALL(Alltoallv, alltoallv, out, counts, places, byte, in, counts, places, byte);
            it->received = blocks;
            break;
        case ALLTOALLW:
            CALL(Alltoallw, alltoallw, out, counts, places, it->types, in, counts, places, it->types);
            it->received = blocks;
            break;
        case REDUCE:
            CALL(Reduce, reduce, out, in, n, byte, MPI_BAND, root);
            it->received = is_root ? 1 : 0;
            break;
        case ALLREDUCE:
            CALL(Allreduce, allreduce, out, in, n, byte, MPI_BAND);
            it->received = 1;
            break;
        case REDUCE_SCATTER: /* between groups both have as much altogether */
            for (int i = 0; shape->remote && i < shape->size; ++i) counts[i] = n * shape->remote;
            CALL(Reduce_scatter, reduce_scatter, out, in, counts, byte, MPI_BAND);
            it->received = 1;
            break;
        case REDUCE_SCATTER_BLOCK:
            CALL(Reduce_scatter_block, reduce_scatter_block, out, in, shape->remote ? n * shape->remote : n,
                 byte, MPI_BAND);
            it->received = 1;
            break;
        case SCAN:
            CALL(Scan, scan, out, in, n, byte, MPI_BAND);
            it->received = 1;
            break;
        case EXSCAN:
            CALL(Exscan, exscan, out, in, n, byte, MPI_BAND);
            it->received = shape->me > 0;
            break;
        case NEIGHBOR_ALLGATHER:
            CALL(Neighbor_allgather, neighbor_allgather, out, n, byte, in, n, byte);
            break;
        case NEIGHBOR_ALLGATHERV:
            CALL(Neighbor_allgatherv, neighbor_allgatherv, out, n, byte, in, counts, places, byte);
            break;
        case NEIGHBOR_ALLTOALL:
            CALL(Neighbor_alltoall, neighbor_alltoall, out, n, byte, in, n, byte);
            break;
        case NEIGHBOR_ALLTOALLV:
            CALL(Neighbor_alltoallv, neighbor_alltoallv, out, counts, places, byte, in, counts, places, byte);
            break;
        default:
            CALL(Neighbor_alltoallw, neighbor_alltoallw, out, counts, it->far_places, it->types, in, counts,
                 it->far_places, it->types);
            break;
    }
    if (it->procedure >= FIRST_NEIGHBOR) it->received = blocks;
    return code;
}

int begin_slice(struct slice_call* it, enum procedure procedure, enum form form, const struct shape* shape,
                const unsigned char* slice, int n, int prefill) {
    int others = shape->remote ? shape->remote : shape->size, root = 0, is_root = shape->me == 0;
    if (shape->has_neighbors) others = shape->indegree;
    if (shape->remote) {
        is_root = shape->first_group && shape->me == 0;
        if (shape->first_group) root = is_root ? MPI_ROOT : MPI_PROC_NULL;
    }
    int most = (others > shape->size ? others : shape->size) * (shape->remote ? shape->remote : 1);
    *it =
        (struct slice_call){.procedure = procedure, .shape = shape, .slice = slice, .n = n, .blocks = others};
    it->room = (size_t)n * (size_t)most;
    it->request = MPI_REQUEST_NULL;
    it->out = memory(it->room), it->in = memory(it->room);
    memset(it->in, prefill, it->room);
    for (int i = 0; i < most; ++i) memcpy(it->out + (size_t)n * (size_t)i, slice, (size_t)n);
    for (int i = 0; i < MOST_RANKS; ++i) {
        it->counts[i] = n, it->places[i] = n * i, it->far_places[i] = it->places[i];
        it->types[i] = MPI_BYTE;
    }
    return start(it, form, root, is_root);
}

int end_slice(struct slice_call* it) {
    int code = MPI_Wait(&it->request, MPI_STATUS_IGNORE);
    if (it->request != MPI_REQUEST_NULL) OK(MPI_Request_free(&it->request)); /* persistent */
    return code;
}

void free_slice(struct slice_call* it) {
    free(it->out), free(it->in);
}

int block_of(enum procedure which, int bytes, int ranks) {
    int one = which == BCAST || which == REDUCE || which == ALLREDUCE || which == SCAN || which == EXSCAN ||
              which >= FIRST_NEIGHBOR;
    return one ? bytes : bytes / ranks;
}
