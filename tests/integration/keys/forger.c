/* Plays the network at start-up: preloaded under MPIsec, it changes what travels between nodes. Works on the
 * rank that FORGER_RANK names.
 *
 * FORGER_SEND names a start-up message by its tag (src/shim/startup/key_exchange.cpp):
 *
 * - TAG:BYTE flips a bit of that byte,
 * - TAG:+N sends N bytes more (or less, -N),
 * - TAG:drop never sends it.
 *
 * FORGER_HELLO changes the cards that arrive here, or with FORGER_WAY=out those that leave (src/shim/startup/node_cards.hpp):
 *
 * - RANK:BYTE flips a bit of that byte of the hello of the node that RANK leads,
 * - RANK:here moves RANK to the card of the receiver's node,
 * - RANK:node-id makes the hello of RANK's card say that it is on the receiver's node,
 * - RANK:away takes RANK out of all cards,
 * - RANK:apart says that the ranks of the node that RANK leads have not all one affinity mask,
 * - RANK:job prints the job's mark in the hello of the node that RANK leads. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { hello_bytes = 256, node_id_at = 112, node_id_bytes = 16, rank_at = 128, job_at = 232, job_bytes = 16 };
enum { most_ranks = 64, cards_tag = 32767 };

static int my_rank(void) {
    int rank;
    const char* said = getenv("PMI_RANK"); /* in a session there is no MPI_COMM_WORLD */
    if (said) return atoi(said);
    int (*comm_rank)(MPI_Comm, int*) = (int (*)(MPI_Comm, int*))dlsym(RTLD_NEXT, "PMPI_Comm_rank");
    comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

/* The two halves of a setting that applies to this rank; 0 when there is none. */
static int setting(const char* name, int* number, const char** what) {
    const char *text = getenv(name), *rank = getenv("FORGER_RANK");
    if (!text || !rank || atoi(rank) != my_rank()) return 0;
    *number = atoi(text);
    *what = strchr(text, ':') + 1;
    return 1;
}

/* Whether messages with this tag are changed; if so `to` is what travels instead, and *count its length, -1
 * when nothing does. */
static int forge(const void* from, unsigned char* to, size_t room, int* count, int tag) {
    int which;
    const char* what;
    if (!setting("FORGER_SEND", &which, &what) || which != tag || (size_t)*count + 256 > room) return 0;
    memset(to, 0, room);
    memcpy(to, from, *count);
    if (strcmp(what, "drop") == 0)
        *count = -1;
    else if (*what == '+' || *what == '-')
        *count += atoi(what);
    else
        to[atoi(what)] ^= 0x10;
    return 1;
}

int PMPI_Send(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
    int (*next)(const void*, int, MPI_Datatype, int, int, MPI_Comm) =
        (int (*)(const void*, int, MPI_Datatype, int, int, MPI_Comm))dlsym(RTLD_NEXT, "PMPI_Send");
    unsigned char changed[512];
    if (!forge(buffer, changed, sizeof changed, &count, tag)) return next(buffer, count, type, to, tag, comm);
    return count < 0 ? MPI_SUCCESS : next(changed, count, type, to, tag, comm);
}

static size_t forge_cards(unsigned char* at, size_t bytes);

static int forges_what_leaves(void) {
    const char* way = getenv("FORGER_WAY");
    return way && strcmp(way, "out") == 0;
}

/* Cards. What is sent stays in memory. */
int PMPI_Isend(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
               MPI_Request* request) {
    int (*next)(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*) = (int (*)(
        const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*))dlsym(RTLD_NEXT, "PMPI_Isend");
    static unsigned char changed[8][8 * 1024];
    static int used;
    const void* sent = buffer;
    if (used < 8 && forge(buffer, changed[used], sizeof changed[used], &count, tag)) sent = changed[used++];
    if (used < 8 && tag == cards_tag && forges_what_leaves() && (size_t)count < sizeof changed[0] / 2) {
        memcpy(changed[used], buffer, (size_t)count);
        count = (int)forge_cards(changed[used], (size_t)count);
        sent = changed[used++];
    }
    return next(sent, count, type, to, tag, comm, request);
}

static void print_job(const unsigned char* mark) {
    char text[2 * job_bytes + 1];
    for (int i = 0; i < job_bytes; ++i) snprintf(text + 2 * i, 3, "%02x", mark[i]);
    printf("job %s\n", text);
    fflush(stdout);
}

/* Cards that arrive. */
static struct {
    unsigned char* at;
    size_t room;
    MPI_Request request;
} arriving[8];

int PMPI_Irecv(void* buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
               MPI_Request* request) {
    int (*next)(void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*) =
        (int (*)(void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*))dlsym(RTLD_NEXT, "PMPI_Irecv");
    int code = next(buffer, count, type, from, tag, comm, request);
    for (int i = 0; tag == cards_tag && !forges_what_leaves() && i < 8; i++) {
        if (arriving[i].at) continue;
        arriving[i].at = buffer;
        arriving[i].room = (size_t)count;
        arriving[i].request = *request;
        break;
    }
    return code;
}

/* The card of a node. */
static struct card {
    unsigned char hello[hello_bytes];
    unsigned apart;
    int ranks[most_ranks], count;
} cards[most_ranks];
static int count_of_cards;

static void read_cards(const unsigned char* at, size_t bytes) {
    const unsigned char* end = at + bytes;
    for (count_of_cards = 0; at < end; ++count_of_cards) {
        struct card* card = &cards[count_of_cards];
        unsigned runs, run[3];
        memcpy(card->hello, at, hello_bytes);
        memcpy(&card->apart, at + hello_bytes, 4);
        memcpy(&runs, at + hello_bytes + 4, 4);
        card->count = 0;
        for (at += hello_bytes + 8; runs > 0; --runs, at += sizeof run) {
            memcpy(run, at, sizeof run);
            for (unsigned i = 0; i < run[1]; ++i) card->ranks[card->count++] = (int)(run[0] + i * run[2]);
        }
    }
}

/* A run for each rank; as long as there is room. Returns how many bytes. */
static size_t write_cards(unsigned char* to) {
    unsigned char* at = to;
    for (struct card* card = cards; card < cards + count_of_cards; ++card) {
        memcpy(at, card->hello, hello_bytes);
        memcpy(at + hello_bytes, &card->apart, 4);
        memcpy(at + hello_bytes + 4, &card->count, 4);
        at += hello_bytes + 8;
        for (int i = 0; i < card->count; ++i, at += 12) {
            const int run[3] = {card->ranks[i], 1, 1};
            memcpy(at, run, sizeof run);
        }
    }
    return (size_t)(at - to);
}

static struct card* card_with(int rank) {
    for (struct card* card = cards; card < cards + count_of_cards; ++card)
        for (int i = 0; i < card->count; ++i)
            if (card->ranks[i] == rank) return card;
    return NULL;
}

static int by_first_rank(const void* one, const void* other) {
    return ((const struct card*)one)->ranks[0] - ((const struct card*)other)->ranks[0];
}

static void take_out(int rank) {
    struct card* card = card_with(rank);
    int left = 0;
    for (int i = 0; i < card->count; ++i)
        if (card->ranks[i] != rank) card->ranks[left++] = card->ranks[i];
    card->count = left;
    if (left > 0) { /* as if the next were the first */
        memcpy(card->hello + rank_at, &card->ranks[0], sizeof(int));
        return;
    }
    *card = cards[--count_of_cards];
    qsort(cards, (size_t)count_of_cards, sizeof cards[0], by_first_rank);
}

/* `hello`: the rank's, or that of its node. The lowest rank's is the card's. */
static void put_in(int rank, const unsigned char* hello, struct card* card) {
    int at = card->count++;
    for (; at > 0 && card->ranks[at - 1] > rank; --at) card->ranks[at] = card->ranks[at - 1];
    card->ranks[at] = rank;
    if (at > 0) return;
    unsigned char node_id[node_id_bytes];
    memcpy(node_id, card->hello + node_id_at, node_id_bytes);
    memcpy(card->hello, hello, hello_bytes);
    memcpy(card->hello + rank_at, &rank, sizeof rank);
    memcpy(card->hello + node_id_at, node_id, node_id_bytes);
}

/* Returns how many bytes there are then. */
static size_t forge_cards(unsigned char* at, size_t bytes) {
    int rank;
    const char* what;
    if (!setting("FORGER_HELLO", &rank, &what)) return bytes;
    read_cards(at, bytes);
    struct card* card = card_with(rank);
    struct card* own = card_with(my_rank());
    if (!card) return bytes;
    if (strcmp(what, "job") == 0) {
        print_job(card->hello + job_at);
    } else if (strcmp(what, "here") == 0) {
        if (!own) return bytes;
        unsigned char hello[hello_bytes];
        memcpy(hello, card->hello, hello_bytes);
        take_out(rank);
        put_in(rank, hello, card_with(my_rank()));
        qsort(cards, (size_t)count_of_cards, sizeof cards[0], by_first_rank);
    } else if (strcmp(what, "node-id") == 0) {
        memcpy(card->hello + node_id_at, own ? own->hello + node_id_at : card->hello + node_id_at,
               node_id_bytes);
    } else if (strcmp(what, "away") == 0) {
        take_out(rank);
    } else if (strcmp(what, "apart") == 0) {
        card->apart ^= 1;
    } else {
        card->hello[atoi(what)] ^= 0x10;
    }
    return write_cards(at);
}

int PMPI_Test(MPI_Request* request, int* done, MPI_Status* status) {
    int (*next)(MPI_Request*, int*, MPI_Status*) =
        (int (*)(MPI_Request*, int*, MPI_Status*))dlsym(RTLD_NEXT, "PMPI_Test");
    const MPI_Request watched = *request;
    MPI_Status own;
    if (status == MPI_STATUS_IGNORE) status = &own;
    int code = next(request, done, status), bytes = 0;
    for (int i = 0; *done && i < 8; i++) {
        if (!arriving[i].at || arriving[i].request != watched) continue;
        MPI_Get_count(status, MPI_BYTE, &bytes);
        if ((size_t)bytes <= arriving[i].room)
            MPI_Status_set_elements(status, MPI_BYTE, (int)forge_cards(arriving[i].at, (size_t)bytes));
        arriving[i].at = NULL;
    }
    return code;
}
