/* Collectives all of whose blocks are one slice of bytes. Reductions combine the slice with itself by bitwise
 * and. So whatever a rank hands on, also part of a result, is the slice. */
#ifndef MPISEC_TESTS_COLLECTIVE_SLICE_H
#define MPISEC_TESTS_COLLECTIVE_SLICE_H

#include "collective_comms.h"

struct slice_call {
    enum procedure procedure;
    const struct shape* shape;
    const unsigned char* slice;
    int n;
    unsigned char *out, *in; /* in: `prefill` everywhere before */
    size_t room;             /* bytes of each */
    int blocks, received;    /* received: that this rank gets when all goes well, from the start of `in` */
    int counts[MOST_RANKS], places[MOST_RANKS];
    MPI_Aint far_places[MOST_RANKS];
    MPI_Datatype types[MOST_RANKS];
    MPI_Request request;
};

/* Rooted ones have their root at rank 0, between groups that of the first one. Both return MPI's code. */
int begin_slice(struct slice_call* it, enum procedure procedure, enum form form, const struct shape* shape,
                const unsigned char* slice, int n, int prefill);
int end_slice(struct slice_call* it);
void free_slice(struct slice_call* it);

/* Bytes of a block, so that a call of the procedure on `ranks` ranks carries about `bytes` from each. */
int block_of(enum procedure procedure, int bytes, int ranks);

#endif
