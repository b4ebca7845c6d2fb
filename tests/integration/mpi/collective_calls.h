/* One random collective: its arguments on this rank, drawn from what all ranks know of it, and its call in
 * one of three forms. The bytes that every rank sends, and those that lie in its buffers before, depend on
 * the operation's number and the rank only, so what is in the buffers afterwards must be the same plain and
 * sealed. */
#ifndef MPISEC_TESTS_COLLECTIVE_CALLS_H
#define MPISEC_TESTS_COLLECTIVE_CALLS_H

#include "harness.h"

#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define HAVE_PERSISTENT_COLLECTIVES 1
#endif

enum procedure {
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
    REDUCE_SCATTER,
    REDUCE_SCATTER_BLOCK,
    SCAN,
    EXSCAN,
    NEIGHBOR_ALLGATHER,
    NEIGHBOR_ALLGATHERV,
    NEIGHBOR_ALLTOALL,
    NEIGHBOR_ALLTOALLV,
    NEIGHBOR_ALLTOALLW,
    PROCEDURES,
    FIRST_NEIGHBOR = NEIGHBOR_ALLGATHER
};
extern const char* const procedure_names[];

enum form { BLOCKING, NONBLOCKING, PERSISTENT, REFERENCE };
enum { MARGIN = 64 }; /* bytes before and after every buffer that nobody may touch */

/* A communicator, as its members see it. */
struct shape {
    const char* name;
    MPI_Comm comm; /* MPI_COMM_NULL: this rank is not in it */
    int me, size;
    int remote; /* size of the other group, 0 inside a group */
    int spans_nodes;
    int first_group;                   /* this rank's group is the first of the two */
    int world[64], remote_world[64];   /* world ranks of both groups */
    int has_neighbors;                 /* a topology */
    int sources[64], destinations[64]; /* or MPI_PROC_NULL */
    int indegree, outdegree;
};

/* What all ranks know. */
struct operation {
    uint64_t id;
    enum procedure procedure;
    enum form form;
    int shape;
    int bytes; /* of a block or vector, about */
    int base, unit;
    int op;
    unsigned root;     /* modulo the size of the group */
    int root_in_first; /* between groups: which one has the root */
    int in_place;
    int starts;       /* of a persistent one */
    int on_duplicate; /* a non-blocking one: on a duplicate, which is freed at once */
};

enum { OPS = 12, BETWEEN_GROUPS = 11 /* number of the shape */ };
int is_reduction(enum procedure procedure);

enum style { EQUAL, PLACED, TYPED }; /* how blocks are described: as to no suffix, v and w */

/* Blocks in a buffer. */
struct side {
    unsigned char* buffer; /* NULL: not significant here */
    size_t room;
    int blocks;
    MPI_Datatype type; /* of all blocks, or types[i] */
    int counts[64], places[64];
    MPI_Aint far_places[64]; /* in bytes, always */
    MPI_Datatype types[64];
    int made; /* number of types in own_types */
    MPI_Datatype own_types[64];
    int each; /* elements of a block, when equal */
};

struct call {
    struct operation operation;
    const struct shape* shape;
    struct side send, receive;
    MPI_Op op;
    int own_op;
    int start; /* number of the start that is under way, from 0 */
    MPI_Request request;
    int undefined;       /* MPI leaves this rank's receive buffer open */
    unsigned char* copy; /* sent instead of what MPI_IN_PLACE means */
    size_t defined;      /* or all of it but the first bytes, when not 0 */
};

/* Runs a blocking operation, starts a non-blocking one, initializes a persistent one. `request` is null after
 * a blocking one. */
void make_call(struct call* call, const struct operation* operation, const struct shape* shape, int start);
/* New contents for the next start of a persistent one. */
void refill(struct call* call);
/* A hash of all bytes of both buffers. */
uint64_t result_of(struct call* call);
void free_call(struct call* call);

/* What MPI says about the results, with messages between two ranks (collective_reference.c). Buffers are
 * filled. */
void refer_bcast(struct call* call, int root, int is_root);
void refer_rooted(struct call* call, int gathers, int root, int is_root);
void refer_all_to_all(struct call* call);
void refer_neighbors(struct call* call);
/* `sum` elements altogether, of which this rank gets `count` after the first `before`. */
void refer_reduction(struct call* call, int root, int is_root, int sum, int count, int before);

MPI_Aint extent_of(MPI_Datatype type);
uint64_t mix(uint64_t a, uint64_t b, uint64_t c);

#endif
