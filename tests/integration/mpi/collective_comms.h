/* Communicators of every kind for random collectives. */
#ifndef MPISEC_TESTS_COLLECTIVE_COMMS_H
#define MPISEC_TESTS_COLLECTIVE_COMMS_H

#include "collective_calls.h"

enum { SHAPES = 15, MOST_RANKS = 64 };

/* Collective over MPI_COMM_WORLD. A shape of which this rank is no member has MPI_COMM_NULL. */
void make_shapes(struct shape shapes[SHAPES]);
void free_shapes(struct shape shapes[SHAPES]);

#endif
