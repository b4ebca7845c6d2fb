#include "schedule.h"

#include <math.h>
#include <string.h>

#include "harness.h"

uint64_t draw(struct generator* generator) {
    uint64_t z = (generator->state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

int below(struct generator* generator, int bound) {
    return (int)(draw(generator) % (uint64_t)bound);
}

static int log_uniform(struct generator* generator, double most) {
    double u = (double)(draw(generator) >> 11) / 9007199254740992.0;
    return (int)exp(u * log(most + 1)) - 1;
}

/* Mostly small, thick around where a message begins to travel in segments and where a segment ends, now and
 * then up to 8 MiB. */
static int draw_size(struct generator* generator) {
    int dice = below(generator, 100);
    if (dice < 5) return 0;
    if (dice < 60) return log_uniform(generator, THRESHOLD);
    if (dice < 75) return THRESHOLD - 2 + below(generator, 5);
    if (dice < 85) return THRESHOLD + (1 + below(generator, 3)) * SEGMENT - 2 + below(generator, 5);
    if (dice < 99) return log_uniform(generator, 1 << 20);
    return log_uniform(generator, 8 << 20);
}

static void draw_layouts(struct generator* generator, struct message* message) {
    int dice = below(generator, 10);
    message->send_layout = message->receive_layout = CONTIGUOUS;
    if (dice == 0 && message->n % 8 == 0) message->send_layout = message->receive_layout = DOUBLES;
    if (dice == 1 && message->n % 12 == 0) message->send_layout = message->receive_layout = INT_AND_DOUBLE;
    if (dice > 5) message->send_layout = below(generator, LAYOUT_KINDS);
    if (dice > 6) message->receive_layout = below(generator, LAYOUT_KINDS);
}

static int same_half(int a, int b) {
    return a % 2 == b % 2;
}

static void draw_message(struct generator* generator, int ranks, struct round* round,
                         struct message* message) {
    message->id = generator->next_id++;
    message->source = below(generator, ranks);
    message->destination = below(generator, ranks);
    message->comm = below(generator, COMMS);
    if (message->comm == COMM_OF_HALVES && !same_half(message->source, message->destination))
        message->comm = 0;
    message->tag = 1 + round->count; /* of its own in the round */
    message->n = draw_size(generator);
    message->slack = below(generator, 3) ? 0 : below(generator, 2 * THRESHOLD);
    message->partner = -1;
    draw_layouts(generator, message);
    int buffered = below(generator, 8) == 0 && message->n <= 2 * THRESHOLD;
    message->send = buffered ? BSEND + below(generator, 3) : below(generator, SSEND_INIT + 1);
    message->receive = below(generator, IRECV_AFTER_CANCELLED + 1);
    /* A rank cannot wait for itself. */
    if (message->source == message->destination && message->send < FIRST_NONBLOCKING_SEND)
        message->send = ISEND;
}

/* All messages of one class, so that they are sent and received in the order of the list. */
static void make_uniform(struct generator* generator, struct round* round) {
    int blocking_sends = below(generator, 2), blocking_receives = below(generator, 2);
    for (int i = 0; i < round->count; ++i) {
        struct message* message = &round->messages[i];
        if (blocking_sends && message->source != message->destination)
            message->send = below(generator, FIRST_NONBLOCKING_SEND);
        else if (message->send < FIRST_NONBLOCKING_SEND)
            message->send = ISEND;
        if (blocking_receives)
            message->receive = below(generator, FIRST_NONBLOCKING_RECEIVE);
        else
            message->receive = IRECV + below(generator, 2);
    }
}

static void make_series(struct generator* generator, struct round* round) {
    int tags = 1 + below(generator, 3);
    make_uniform(generator, round);
    for (int i = 0; i < round->count; ++i) round->messages[i].tag = 1 + below(generator, tags);
}

static void make_wild(struct generator* generator, struct round* round) {
    int comm = below(generator, 2) * 3, receive = below(generator, RECV_INIT + 1);
    for (int i = 0; i < round->count; ++i) {
        struct message* message = &round->messages[i];
        message->comm = comm; /* one communicator of all ranks */
        if (message->send < FIRST_NONBLOCKING_SEND) message->send = ISEND;
        message->receive = receive;
        message->receive_layout = CONTIGUOUS;
        if (message->send_layout >= LAYOUT_KINDS) message->send_layout = CONTIGUOUS;
        if (message->n > 4 * THRESHOLD) message->n = 4 * THRESHOLD - (int)(message->id % 100);
    }
}

static void make_ready(struct generator* generator, struct round* round) {
    for (int i = 0; i < round->count; ++i) {
        struct message* message = &round->messages[i];
        message->receive = IRECV + below(generator, 3);
        if (below(generator, 2)) message->send = RSEND + below(generator, 3);
    }
}

/* Pairs of messages between two ranks, there and back. */
static void make_exchanges(struct generator* generator, struct round* round) {
    round->count &= ~1;
    for (int i = 0; i < round->count; i += 2) {
        struct message *there = &round->messages[i], *back = &round->messages[i + 1];
        there->send = below(generator, EXCHANGE_MODES);
        back->comm = there->comm;
        back->source = there->destination;
        back->destination = there->source;
        if (there->send == SENDRECV_REPLACE) {
            back->n = there->n;
            there->slack = back->slack = 0;
            there->send_layout = there->receive_layout = back->send_layout = back->receive_layout;
            if (back->send_layout >= LAYOUT_KINDS) {
                there->send_layout = there->receive_layout = back->send_layout = back->receive_layout =
                    CONTIGUOUS;
            }
        }
        back->send = there->send;
        there->partner = i + 1;
        back->partner = i;
        if (there->source == there->destination)
            back->tag = there->tag; /* one message to oneself: the other is left out */
    }
}

void next_round(struct generator* generator, int ranks, struct round* round) {
    int dice = below(generator, 16);
    round->kind = dice < 7    ? UNIQUE_TAGS
                  : dice < 9  ? SERIES
                  : dice < 11 ? ANY_TAGS
                  : dice < 13 ? WILD
                  : dice < 14 ? READY
                              : EXCHANGES;
    round->completion = below(generator, 1 << 16);
    int count = 1 + below(generator, ranks * 6 < MOST_MESSAGES ? ranks * 6 : MOST_MESSAGES);
    round->count = 0;
    while (round->count < count) {
        draw_message(generator, ranks, round, &round->messages[round->count]);
        ++round->count;
    }
    switch (round->kind) {
        case SERIES:
            make_series(generator, round);
            break;
        case ANY_TAGS:
            make_uniform(generator, round);
            break;
        case WILD:
            make_wild(generator, round);
            break;
        case READY:
            make_ready(generator, round);
            break;
        case EXCHANGES:
            make_exchanges(generator, round);
            break;
        default:
            break;
    }
}
