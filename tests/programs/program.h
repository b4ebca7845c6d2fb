/* A random program is a list of steps (generate.py), one line of text each: a verb and key=value pairs. Every
 * rank executes all of them in order, on objects that the steps name by number, and writes a line of trace
 * per step.
 *
 * A step whose objects are not there is skipped, and whether they are there is the same on all ranks of a
 * communicator. So every part of a legal program is a legal program: what makes a failing one small
 * (shrink.py) need not know what a step means. */
#ifndef MPISEC_TESTS_PROGRAM_H
#define MPISEC_TESTS_PROGRAM_H

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
#define HAVE_MPI_4 1 /* persistent collectives, MPI_Isendrecv, MPI_Comm_idup_with_info */
#endif
#ifdef OMPI_MAJOR_VERSION
enum { ON_OPEN_MPI = OMPI_MAJOR_VERSION, ON_MPICH = 0 };
#elif defined(MPICH_NUMVERSION)
enum { ON_OPEN_MPI = 0, ON_MPICH = MPICH_NUMVERSION / 10000000 };
#else
enum { ON_OPEN_MPI = 0, ON_MPICH = 5 };
#endif

#ifndef ON_INTEL
#define ON_INTEL 0
#endif

/* ---- calls: CALL(MPI_Send, (…)) counts it and gives its code */
struct call_site {
    const char* procedure;
    long calls;
    int known;
    struct call_site* next;
};
void count_call(struct call_site* site);
#define CALL_(name, arguments)                                \
    __extension__({                                           \
        static struct call_site site_ = {.procedure = #name}; \
        count_call(&site_);                                   \
        name arguments;                                       \
    })
#define CALL(name, arguments) CALL_(name, arguments)
/* The same for calls that cannot fail in a legal program; the trace says when one does. */
#define OK_(name, arguments) note_code(#name, CALL_(name, arguments))
#define OK(name, arguments) OK_(name, arguments)
void write_calls(const char* path);

/* ---- steps (script.c) */
enum { MOST_PAIRS = 32 };
struct step {
    char* verb;
    char* keys[MOST_PAIRS];
    char* values[MOST_PAIRS];
    int pairs, number; /* number: its line */
};
int parse_step(struct step* step, char* line, int number);
/* The i-th entry of a key's comma-separated list, which starts over at its end. */
long entry(const struct step* step, const char* key, int i, long otherwise);
void entry_text(const struct step* step, const char* key, int i, const char* otherwise, char text[32]);
int entries(const struct step* step, const char* key);
static inline long value(const struct step* step, const char* key, long otherwise) {
    return entry(step, key, 0, otherwise);
}
/* Whether a key has this value. */
int is(const struct step* step, const char* key, const char* text);
int verb_is(const struct step* step, const char* verb);

/* ---- trace (trace.c): what is said between begin_line and end_line becomes one line */
void open_trace(const char* path);
void begin_line(const struct step* step);
__attribute__((format(printf, 1, 2))) void say(const char* format, ...);
/* Something that a callback tells: the line has all of them at its end, sorted, for their order is open. */
__attribute__((format(printf, 1, 2))) void say_called(const char* format, ...);
int callbacks(void); /* how many were told of in this line */
void end_line(void);
/* A thread of its own keeps its lines; who joins it writes them. */
void keep_lines(void);
char* take_lines(void);
void write_lines(char* text);
int note_code(const char* what, int code); /* says so when it is an error; returns it */
int class_of(int code);
__attribute__((noreturn, format(printf, 1, 2))) void give_up(const char* format, ...);

/* ---- random values, the same on all ranks for one seed */
uint64_t mix(uint64_t a, uint64_t b);
static inline uint64_t mix3(uint64_t a, uint64_t b, uint64_t c) {
    return mix(mix(a, b), c);
}

/* ---- communicators (communicators.c) */
enum {
    MOST_COMMS = 128,
    MOST_TYPES = 128,
    MOST_SLOTS = 128,
    MOST_OPS = 32,
    MOST_KEYVALS = 32,
    MOST_HANDLERS = 32
};
enum { MOST_RANKS = 64 };
struct comm {
    MPI_Comm comm;
    MPI_Request request; /* a duplicate that is under way */
    int pending, inter, side, rank, size, remote, group_is_wrong, attributes;
};
extern struct comm comms[MOST_COMMS]; /* 0: MPI_COMM_WORLD, 1: MPI_COMM_SELF */
extern int world_rank, world_size;
/* The communicator that the key names; NULL when it is not there, or not for this rank. */
struct comm* comm_of(const struct step* step, const char* key);
int communicator_step(const struct step* step);
void look_at(struct comm* comm); /* fills in what MPI says of comm->comm */
void finish_duplicate(int id);
void free_communicators(void);

/* ---- datatypes (datatypes.c). An element of a type is `units` units of a class (a predefined type, or a
 * structure), at known offsets: types of one class match each other. */
enum { PAIRS = 8, PREDEFINED = 10, MOST_UNITS = 64, STRUCTURES = 100 };
struct type {
    MPI_Datatype type;
    int class; /* the number of a predefined type, or STRUCTURES + that of the first structure */
    int units, unit_size;
    MPI_Aint offsets[MOST_UNITS], low, high, extent; /* low … high: bytes touched */
    int made;
};
extern struct type types[MOST_TYPES];
void predefine_types(void);
struct type* type_of(const struct step* step, const char* key);
const struct type* type_with(MPI_Datatype handle);
int datatype_step(const struct step* step);
void free_types(void);

/* Memory of `count` elements between margins. */
struct buffer {
    unsigned char *memory, *start; /* start: what MPI is given */
    size_t size;
    long count;
    struct type layout; /* the type may be freed first */
};
void make_buffer(struct buffer* buffer, const struct type* type, long count);
void fill_buffer(struct buffer* buffer, uint64_t seed); /* all bytes; numbers are small */
void free_buffer(struct buffer* buffer);
uint64_t hash_buffer(const struct buffer* buffer); /* of every byte, holes and margins too */

/* ---- requests (requests.c). What a step starts is in a slot, also when it is complete at once; the slot is
 * told of when all is complete. */
struct pending {
    MPI_Request request; /* MPI_REQUEST_NULL: the call was a blocking one, `status` is its own */
    MPI_Status status;
    struct buffer in, out;
    uint64_t in_seed, out_seed;
    int receives; /* the status is that of a message */
    int wild;     /* it may be any of the slot's messages that are wild */
    int ready;    /* persistent: starts after all receives have */
    int hide;     /* this MPI leaves the status as it was */
    long open;    /* so many elements at the end of `in` have what MPI leaves open */
};
struct slot {
    const struct step* step;
    struct pending* list;
    int count, persistent, active, starts, memories;
    void* memory[16]; /* arrays that a collective was given */
};
/* The slot of the key id, empty, or one of this thread's own without; NULL when it is in use. */
struct slot* slot_for(const struct step* step);
struct pending* add_pending(struct slot* slot);
void* slot_memory(struct slot* slot, size_t bytes);
/* What is not to be kept for later steps (those without an id) is completed, told and forgotten. */
void settle(struct slot* slot);
void say_status(const MPI_Status* status, const struct buffer* buffer, int hide);
int requests_on(
    long comm); /* whether there are some of the communicator of this number, persistent ones too */
int request_step(const struct step* step);
void finish_requests(void);

/* ---- the other steps */
int message_step(const struct step* step);
int collective_step(const struct step* step);
int operation_step(const struct step* step);
int attribute_step(const struct step* step);
int error_step(const struct step* step);
int group_step(const struct step* step);
void free_operations(void);
void free_attributes(void);
void free_handlers(void);

void* get_memory(size_t n);

#endif
