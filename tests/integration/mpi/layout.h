/* Buffers whose n bytes of content lie in one of the layouts of schedule.h. */
#ifndef MPISEC_TESTS_LAYOUT_H
#define MPISEC_TESTS_LAYOUT_H

#include "harness.h"

struct place {
    unsigned char* buffer;
    size_t room; /* bytes of the buffer */
    MPI_Datatype type;
    int count;
    int n; /* bytes of content */
    int kind;
    int own_type; /* to be freed */
};

/* A buffer of 0xC3 for n bytes of content. */
void make_place(struct place* place, int kind, int n);
void free_place(struct place* place);
/* The content, in the order of the type map. */
void put_content(struct place* place, const unsigned char* content, int n);
void get_content(const struct place* place, unsigned char* content, int n);
/* Ends the job when a byte outside the first n bytes of content has changed. */
void check_gaps(const struct place* place, int n);

#endif
