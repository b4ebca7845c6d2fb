/* What the rule programs (rules/*.c, leftovers.c) share. A rule is a function that all ranks call; it checks itself
 * and ends the job with a sentence and a non-zero exit when the rule does not hold. Every rule holds for
 * plain MPI too: that is what makes it a fair test. */
#ifndef MPISEC_TESTS_HARNESS_H
#define MPISEC_TESTS_HARNESS_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if MPI_VERSION >= 4
#define HAVE_COUNT_VARIANTS 1 /* the _c procedures */
#endif
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define HAVE_ISENDRECV 1
#endif

/* Bugs of plain MPIs that the rules step around where a message is plain. */
#if defined(MPICH_NUMVERSION) || defined(MPI_ABI_VERSION)
enum {
    ISENDRECV_STATUS_EMPTY = 1, /* MPICH 4.0 and 5.0: not filled in */
    TRUNCATION_HANGS = 1,       /* MPICH 5.0 between nodes */
    OVERRUNS_SHORT_BUFFERS = 0,
    FAILED_BSEND_BLOCKS = 0,
    BSEND_RESTARTS_WRONG = 0
};
#else
enum {
    ISENDRECV_STATUS_EMPTY = 0,
    TRUNCATION_HANGS = 0,
    OVERRUNS_SHORT_BUFFERS = 1, /* Open MPI 4.1 and 5.0: by up to a whole message, in MPI_ERR_TRUNCATE */
    FAILED_BSEND_BLOCKS =
        1, /* Open MPI 4.1 and 5.0: it keeps its sequence number, and nothing more arrives from this rank */
    BSEND_RESTARTS_WRONG =
        1 /* Open MPI 4.1: the second start of a large one sends what the buffer held before */
};
#endif
#if defined(MPICH_NUMVERSION) && MPICH_NUMVERSION < 50000000
#define ISENDRECV_FREES_TYPES 1            /* MPICH 4.0: a derived datatype too often */
enum { IRECV_FROM_NULL_STATUS_WRONG = 1 }; /* MPICH 4.0: says source 0 and tag 0 */
#else
enum { IRECV_FROM_NULL_STATUS_WRONG = 0 };
#endif

extern int rank, size;    /* in MPI_COMM_WORLD */
extern int threads_given; /* what MPI_Init_thread provided */

/* Whether the library says that it is this one: programs for Intel MPI are compiled with MPICH's headers. */
static inline int library_is(const char* name) {
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    return MPI_Get_library_version(version, &length) == MPI_SUCCESS && strstr(version, name) != NULL;
}

/* Node of every world rank, numbered by lowest rank; found with MPI's shared split. */
extern int *node_of, nodes;
static inline int is_local(int other) {
    return node_of[other] == node_of[rank];
}

/* Messages to and from this rank go through MPI unchanged: its bugs show. */
extern int sealed; /* MPIsec is preloaded */
static inline int plain_to(int other) {
    return !sealed || is_local(other);
}

/* What the tests set, and the segment that MPIsec takes then (docs/configuration.md): messages of more than
 * THRESHOLD bytes travel in segments. */
enum { THRESHOLD = 65536, SEGMENT = 131072 };

/* Sizes around everything that changes the way a message travels; `count` of them. The 8 MiB one comes last.
 */
extern const int sizes[], size_count;
/* The same with fewer, for tests that repeat much. */
extern const int few_sizes[], few_count;

__attribute__((noreturn, format(printf, 3, 4))) void fail(const char* file, int line, const char* format,
                                                          ...);
void check_code(const char* file, int line, const char* call, int code);
/* CHECK(condition, sentence…) and OK(MPI call): both end the job when it does not hold. */
#define CHECK(condition, ...)                                    \
    do {                                                         \
        if (!(condition)) fail(__FILE__, __LINE__, __VA_ARGS__); \
    } while (0)
#define OK(call) check_code(__FILE__, __LINE__, #call, (call))

/* The class of an error code. */
int class_of(int code);

/* Bytes that depend on the seed, so that no two messages look alike. */
void fill(void* buffer, size_t n, uint64_t seed);
/* Ends the job unless the n bytes are those of fill(…, seed). */
void check_filled(const char* file, int line, const void* buffer, size_t n, uint64_t seed);
#define CHECK_FILLED(buffer, n, seed) check_filled(__FILE__, __LINE__, buffer, n, seed)
uint64_t seed_of(int from, int to, int tag, int n);

/* Ends the job unless the status speaks of a message of n bytes from source with tag. */
void check_status(const char* file, int line, const MPI_Status* status, int source, int tag, int n);
#define CHECK_STATUS(status, source, tag, n) check_status(__FILE__, __LINE__, status, source, tag, n)

/* Memory that ends the program when there is none. */
void* memory(size_t n);

/* The rank that this rank meets in a round. Over rounds 0 … size-1 every pair meets once, in the same order
 * on every rank, so that blocking exchanges cannot deadlock. The rank itself when it has nobody to meet. */
static inline int partner_in(int round) {
    return ((round - rank) % size + size) % size;
}

double now(void);
void sleep_seconds(double seconds);

#endif
