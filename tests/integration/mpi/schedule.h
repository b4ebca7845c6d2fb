/* The schedule of random traffic: every rank derives the same one from the seed, so that each knows what it
 * must send and receive.
 *
 * A lane (one thread) runs rounds. A round is a list of messages. Every rank goes through it in phases:
 *     A  start the non-blocking receives          B  start the non-blocking and buffered sends
 *     C  the blocking operations, in the order of the list             D  complete what was started
 * All ranks take the blocking operations in one order, and whatever they wait for from outside C was started
 * in A or B: no round can deadlock, whatever the sizes. Messages of one round have tags of their own, or the
 * round has a kind that keeps matching determined. */
#ifndef MPISEC_TESTS_SCHEDULE_H
#define MPISEC_TESTS_SCHEDULE_H

#include <stdint.h>

enum round_kind {
    UNIQUE_TAGS, /* any mixture of modes */
    SERIES, /* few tags: messages of one (source, destination, tag) keep their order, so all are of one class
             */
    ANY_TAGS, /* receives from one source with MPI_ANY_TAG */
    WILD,     /* receives from MPI_ANY_SOURCE: which message comes when is open, each sender's order is not */
    READY,    /* all receives are posted, then a barrier, then ready sends among others */
    EXCHANGES /* Sendrecv, Sendrecv_replace, Isendrecv between two ranks */
};

enum send_mode {
    SEND,
    SSEND,
    FIRST_NONBLOCKING_SEND,
    ISEND = FIRST_NONBLOCKING_SEND,
    ISSEND,
    SEND_INIT,
    SSEND_INIT,
    BSEND,
    IBSEND,
    BSEND_INIT,
    RSEND,
    IRSEND,
    RSEND_INIT
};
enum receive_mode {
    RECV,
    PROBE_RECV,
    IPROBE_RECV,
    MPROBE_MRECV,
    MPROBE_IMRECV,
    IMPROBE_MRECV,
    FIRST_NONBLOCKING_RECEIVE,
    IRECV = FIRST_NONBLOCKING_RECEIVE,
    RECV_INIT,
    IRECV_AFTER_CANCELLED
};
enum exchange_mode { SENDRECV, SENDRECV_REPLACE, ISENDRECV, EXCHANGE_MODES };

/* How bytes lie in a user's buffer. The signature is the same for all, so that the two sides may differ. */
enum layout_kind {
    CONTIGUOUS,
    STRIDED,
    RECORDS,
    BACKWARDS,
    LAYOUT_KINDS,
    DOUBLES = LAYOUT_KINDS,
    INT_AND_DOUBLE
};

struct message {
    uint64_t id;             /* of the lane; also the seed of its bytes */
    int source, destination; /* world ranks */
    int comm, tag, n;
    int send, receive; /* modes */
    int send_layout, receive_layout;
    int slack;   /* bytes by which the receive buffer is larger */
    int partner; /* EXCHANGES: index of the message in the other direction */
};

enum { MOST_MESSAGES = 48, COMMS = 4, COMM_OF_HALVES = 2 };

struct round {
    enum round_kind kind;
    int completion; /* how phase D completes */
    int count;
    struct message messages[MOST_MESSAGES];
};

struct generator {
    uint64_t state;
    uint64_t next_id;
};

uint64_t draw(struct generator* generator);        /* 64 random bits (SplitMix64) */
int below(struct generator* generator, int bound); /* 0 … bound-1 */
void next_round(struct generator* generator, int ranks, struct round* round);

#endif
