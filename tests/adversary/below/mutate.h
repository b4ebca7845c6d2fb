/* What the attacker does to one message of the MPI library.
 *
 *     pass                     nothing (the message is counted)
 *     flip:FIELD:BIT           one bit of a field of the header; FIELD payload: of byte BIT / 8 of the
 *                              payload
 *     set:FIELD:VALUE          a field
 *     drop  dup  swap          not at all, twice, after the next one of this direction
 *     hold:MS                  later, and everything else of this direction passes it
 *     replay:N                 followed by the Nth last message of the same kind (1: the one before)
 *     cut:N  extend:N          N bytes of payload less or more, the length made right
 *     forge:LENGTH:COUNT:FIELD=VALUE[,FIELD=VALUE…]
 *                              preceded by COUNT copies with LENGTH bytes of another payload (-1: as many as
 *                              it has) and these fields; where messages are numbered the copies have the
 *                              numbers 0, 1, …
 *     read:KEY:OFFSET:LENGTH   preceded by libfabric's own request for memory that the receiver has registered under
 *                              that key (xnet)
 *     insert:HEX               preceded by these bytes; mNN among them: the 8 bytes of the message itself at the
 *                              hexadecimal offset NN
 *     end:N                    its first N bytes, then the end of this direction of the connection
 *     lie:SECTION:LENGTH:NUMBER:WORD:LOW:HIGH (in "*")
 *                              in each direction the message NUMBER of those that carry LENGTH bytes in that
 *                              section of the program: its payload's int WORD becomes LOW from a lower to a
 *                              higher rank, HIGH the other way
 *     mirror:SECTION:LENGTH:NUMBER (in "*")
 *                              these two messages, each with the payload of the other: both ranks get back
 *                              what they sent
 *
 * A + after drop, dup, swap or replay also numbers the messages behind it anew, where they are numbered (Open
 * MPI). */
#pragma once
#include <stdio.h>
#include <time.h>

#include "framing.h"

enum {
    MOST_ARGUMENTS = 8,
    MOST_TEXT = 1024, /* of an attack */
    MOST_NUMBERINGS = 32,
    HISTORY = 16,
    MOST_IN_HISTORY = 4096,
    LATE_MS = 300
};

struct bytes {
    uint8_t* data;
    size_t size, room;
};

struct numbering { /* how far the numbers of one sender in one communicator are moved */
    uint64_t context, source;
    int moved;
};

struct history {
    struct bytes old[HISTORY];
    char kinds[HISTORY][16];
    int count;
    struct numbering numberings[MOST_NUMBERINGS];
    int numbering_count;
};

struct held {
    struct bytes bytes;
    struct timespec until;
    int behind_next;
    int end; /* nothing comes any more in this direction */
};

struct attack {
    int active, done, renumber;
    int sender, receiver, number;
    char kind[16]; /* empty: any */
    char name[16];
    char arguments[MOST_ARGUMENTS][MOST_TEXT];
    int count;
    int seen[2];          /* lie, mirror: messages of that length in each direction */
    struct held* waiting; /* mirror: the first of the two */
    struct bytes* waiting_out;
    size_t waiting_header;
};

struct message {
    const struct framing* framing;
    const struct frame* frame;
    const uint8_t* bytes;
    int sender, receiver, number, section;
};

static void put(struct bytes* to, const uint8_t* data, size_t n) {
    if (to->size + n > to->room) {
        to->room = 2 * (to->size + n);
        to->data = realloc(to->data, to->room);
        if (!to->data) abort();
    }
    if (n) memcpy(to->data + to->size, data, n);
    to->size += n;
}

static void take_away(struct bytes* from, size_t n) {
    if (n) memmove(from->data, from->data + n, from->size - n);
    from->size -= n;
}

static int parse_attack(const char* text, struct attack* attack) {
    char what[MOST_TEXT];
    if (strncmp(text, "* ", 2) == 0) {
        attack->sender = attack->receiver = attack->number = -1;
        snprintf(what, sizeof what, "%s", text + 2);
    } else if (sscanf(text, "%d>%d#%d/%15s %1023s", &attack->sender, &attack->receiver, &attack->number,
                      attack->kind, what) != 5) {
        attack->kind[0] = 0;
        if (sscanf(text, "%d>%d#%d %1023s", &attack->sender, &attack->receiver, &attack->number, what) != 4)
            return -1;
    }
    int number = 0;
    for (char* at = strtok(what, ":"); at; at = strtok(NULL, ":"), ++number) {
        if (number == 0)
            snprintf(attack->name, sizeof attack->name, "%s", at);
        else if (number <= MOST_ARGUMENTS)
            snprintf(attack->arguments[number - 1], sizeof *attack->arguments, "%s", at);
    }
    attack->count = number - 1;
    size_t length = strlen(attack->name);
    if (length && attack->name[length - 1] == '+') {
        attack->renumber = 1;
        attack->name[length - 1] = 0;
    }
    attack->active = 1;
    return 0;
}

static long argument(const struct attack* attack, int i) {
    return i < attack->count ? strtol(attack->arguments[i], NULL, 0) : 0;
}

/* Of a longer field the first bytes. */
static void store(uint8_t* at, uint64_t value, int size) {
    memcpy(at, &value, size < (int)sizeof value ? (size_t)size : sizeof value);
}

/* The numbers of the sender and communicator of this frame, made when new; NULL when its kind has none. */
static struct numbering* numbering_of(struct history* history, const struct frame* frame,
                                      const uint8_t* bytes) {
    const struct field* context = find_field(frame, "context");
    const struct field* source = find_field(frame, "source");
    if (!context || !source || !find_field(frame, "seq")) return NULL;
    uint64_t c = load(bytes + context->offset, context->size), s = load(bytes + source->offset, source->size);
    for (int i = 0; i < history->numbering_count; ++i)
        if (history->numberings[i].context == c && history->numberings[i].source == s)
            return &history->numberings[i];
    if (history->numbering_count == MOST_NUMBERINGS) return NULL;
    history->numberings[history->numbering_count] = (struct numbering){c, s, 0};
    return &history->numberings[history->numbering_count++];
}

static void move_by(struct history* history, const struct frame* frame, const uint8_t* bytes, int by) {
    struct numbering* numbering = numbering_of(history, frame, bytes);
    if (numbering) numbering->moved += by;
}

static void put_numbered(struct history* history, const struct frame* frame, const uint8_t* bytes,
                         struct bytes* out) {
    size_t at = out->size;
    put(out, bytes, frame->length);
    struct numbering* numbering = history->numbering_count ? numbering_of(history, frame, bytes) : NULL;
    if (!numbering) return;
    const struct field* seq = find_field(frame, "seq");
    store(out->data + at + seq->offset, load(bytes + seq->offset, seq->size) + (uint64_t)numbering->moved,
          seq->size);
}

static void remember(struct history* history, const struct message* message) {
    if (message->frame->length > MOST_IN_HISTORY) return;
    int at = history->count++ % HISTORY;
    history->old[at].size = 0;
    put(&history->old[at], message->bytes, message->frame->length);
    memcpy(history->kinds[at], message->frame->kind, sizeof history->kinds[at]);
}

static const struct bytes* recall(const struct history* history, const char* kind, int back) {
    int oldest = history->count > HISTORY ? history->count - HISTORY : 0;
    for (int i = history->count - 1; i >= oldest; --i)
        if (strcmp(history->kinds[i % HISTORY], kind) == 0 && --back == 0) return &history->old[i % HISTORY];
    return NULL;
}

static void release(struct held* held, struct bytes* out) {
    put(out, held->bytes.data, held->bytes.size);
    held->bytes.size = 0;
}

static void release_late(struct held* held, struct bytes* out) {
    struct timespec now;
    if (!held->bytes.size) return;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec > held->until.tv_sec ||
        (now.tv_sec == held->until.tv_sec && now.tv_nsec >= held->until.tv_nsec))
        release(held, out);
}

static void hold(struct held* held, long milliseconds, int behind_next) {
    clock_gettime(CLOCK_MONOTONIC, &held->until);
    long nanoseconds = held->until.tv_nsec + milliseconds % 1000 * 1000000;
    held->until.tv_sec += milliseconds / 1000 + nanoseconds / 1000000000;
    held->until.tv_nsec = nanoseconds % 1000000000;
    held->behind_next = behind_next;
}

/* Puts the message with a payload of n bytes more (fewer when negative), 'F' for what is new. Returns where
 * it begins. */
static size_t put_resized(const struct message* message, long n, struct bytes* out) {
    const struct frame* frame = message->frame;
    size_t at = out->size, payload = frame->length - (size_t)frame->header;
    if (n < 0 && (size_t)-n > payload) n = -(long)payload;
    put(out, message->bytes, n < 0 ? frame->length - (size_t)-n : frame->length);
    for (long i = 0; i < n; ++i) put(out, (const uint8_t*)"F", 1);
    const struct field* length = find_field(frame, message->framing->length_field);
    if (length)
        store(out->data + at + length->offset,
              load(message->bytes + length->offset, length->size) + (uint64_t)n, length->size);
    return at;
}

/* Writes the fields of "FIELD=VALUE,…" into the copy; 1 when the frame has all of them. */
static int set_fields(const char* list, const struct frame* frame, uint8_t* copy) {
    char text[sizeof((struct attack*)0)->arguments[0]], *rest = NULL;
    snprintf(text, sizeof text, "%s", list);
    for (char* at = strtok_r(text, ",", &rest); at; at = strtok_r(NULL, ",", &rest)) {
        char* value = strchr(at, '=');
        if (!value) return 0;
        *value++ = 0;
        const struct field* field = find_field(frame, at);
        if (!field) return 0;
        store(copy + field->offset, (uint64_t)strtol(value, NULL, 0), field->size);
    }
    return 1;
}

static int forge(const struct attack* attack, const struct message* message, struct bytes* out) {
    const struct frame* frame = message->frame;
    const struct field* seq = find_field(frame, "seq");
    long length = argument(attack, 0), payload = (long)frame->length - frame->header;
    for (long i = 0; i < argument(attack, 1); ++i) {
        size_t before = out->size, at = put_resized(message, length < 0 ? 0 : length - payload, out);
        memset(out->data + at + frame->header, 'F', out->size - at - (size_t)frame->header);
        if (!set_fields(attack->arguments[2], frame, out->data + at)) {
            out->size = before;
            return 0;
        }
        if (seq) store(out->data + at + seq->offset, (uint64_t)i, seq->size);
    }
    return 1;
}

static void put_read_request(const struct attack* attack, const struct message* message, struct bytes* out) {
    enum { READ_REQUEST = 2, ADDRESS = 16, SIZE = 40 };
    uint8_t request[SIZE] = {message->bytes[0], READ_REQUEST, [5] = 1, [6] = SIZE, [8] = SIZE};
    store(request + ADDRESS, strtoull(attack->arguments[1], NULL, 0), 8);
    store(request + ADDRESS + 8, strtoull(attack->arguments[2], NULL, 0), 8);
    store(request + ADDRESS + 16, strtoull(attack->arguments[0], NULL, 0), 8);
    put(out, request, SIZE);
}

static void put_inserted(const struct attack* attack, const struct message* message, struct bytes* out) {
    enum { OWN = 8 };
    unsigned value;
    for (const char* hex = attack->arguments[0]; *hex; hex += 2) {
        const int own = *hex == 'm';
        if (sscanf(hex += own, "%2x", &value) != 1 || (own && value + OWN > message->frame->length)) abort();
        const uint8_t byte = (uint8_t)value;
        put(out, own ? message->bytes + value : &byte, own ? OWN : 1);
    }
}

/* flip and set: 1 when there is such a field. */
static int change(const struct attack* attack, const struct message* message, uint8_t* copy) {
    const struct frame* frame = message->frame;
    const struct field* field = find_field(frame, attack->arguments[0]);
    long value = argument(attack, 1);
    size_t payload = frame->length - (size_t)frame->header;
    if (strcmp(attack->arguments[0], "payload") == 0) {
        if (!payload) return 0;
        copy[(size_t)frame->header + (size_t)(value / 8) % payload] ^= (uint8_t)(1 << value % 8);
        return 1;
    }
    if (!field) return 0;
    if (strcmp(attack->name, "set") == 0)
        store(copy + field->offset, (uint64_t)value, field->size);
    else
        copy[field->offset + value / 8 % field->size] ^= (uint8_t)(1 << value % 8);
    return 1;
}

/* Where the payload begins that the MPI library sends for itself, in words: 1 when the message was changed.
 */
static int lie(struct attack* attack, const struct message* message, uint8_t* copy) {
    size_t payload = message->frame->length - (size_t)message->frame->header;
    int up = message->sender < message->receiver;
    size_t at = (size_t)message->frame->header + 4 * (size_t)argument(attack, 3);
    if (message->section != argument(attack, 0) || payload != (size_t)argument(attack, 1)) return 0;
    if (attack->seen[up]++ != argument(attack, 2) || at + 4 > message->frame->length) return 0;
    store(copy + at, (uint64_t)argument(attack, up ? 4 : 5), 4);
    return 1;
}

/* 1 when the message was changed, or is held until the one in the other direction has come. */
static int mirror(struct attack* attack, const struct message* message, struct held* held,
                  struct bytes* out) {
    size_t header = (size_t)message->frame->header, payload = message->frame->length - header;
    int up = message->sender < message->receiver;
    if (message->section != argument(attack, 0) || payload != (size_t)argument(attack, 1)) return 0;
    if (attack->seen[up]++ != argument(attack, 2)) return 0;
    if (!attack->waiting) {
        put(&held->bytes, message->bytes, message->frame->length);
        hold(held, LATE_MS, 0);
        attack->waiting = held;
        attack->waiting_out = out;
        attack->waiting_header = header;
        return 2;
    }
    if (attack->waiting->bytes.size == 0) return 0; /* it could not be kept any longer */
    size_t at = out->size;
    put(out, message->bytes, message->frame->length);
    uint8_t* first = attack->waiting->bytes.data + attack->waiting_header;
    for (size_t i = 0; i < payload; ++i) {
        uint8_t byte = first[i];
        first[i] = out->data[at + header + i];
        out->data[at + header + i] = byte;
    }
    release(attack->waiting, attack->waiting_out);
    return 2;
}

static int replay(const struct attack* attack, const struct message* message, struct history* history,
                  struct bytes* out) {
    const struct bytes* old = recall(history, message->frame->kind, (int)argument(attack, 0));
    if (!old) return 0;
    put_numbered(history, message->frame, message->bytes, out);
    size_t at = out->size;
    put(out, old->data, old->size);
    const struct field* seq = find_field(message->frame, "seq");
    if (attack->renumber && seq) {
        struct frame frame = {.kind = "other"};
        message->framing->parse(old->data, old->size, 1, &frame);
        const struct field* context = find_field(&frame, "context");
        const struct field* now = find_field(message->frame, "context");
        if (context && load(old->data + context->offset, context->size) ==
                           load(message->bytes + now->offset, now->size)) {
            move_by(history, message->frame, message->bytes, 1);
            struct numbering* numbering = numbering_of(history, message->frame, message->bytes);
            uint64_t next =
                load(message->bytes + seq->offset, seq->size) + (uint64_t)(numbering ? numbering->moved : 1);
            store(out->data + at + seq->offset, next, seq->size);
        }
    }
    return 1;
}

static void twice(struct attack* attack, const struct message* message, struct history* history,
                  struct bytes* out) {
    put_numbered(history, message->frame, message->bytes, out);
    if (attack->renumber) move_by(history, message->frame, message->bytes, 1);
    put_numbered(history, message->frame, message->bytes, out);
}

static void put_aside(struct attack* attack, const struct message* message, struct history* history,
                      struct held* held) {
    int swap = strcmp(attack->name, "swap") == 0;
    if (attack->renumber) move_by(history, message->frame, message->bytes, 1);
    put_numbered(history, message->frame, message->bytes, &held->bytes);
    if (attack->renumber) move_by(history, message->frame, message->bytes, -2);
    hold(held, swap ? LATE_MS : argument(attack, 0), swap);
}

static int attack_message(struct attack* attack, const struct message* message, struct history* history,
                          struct held* held, struct bytes* out) {
    const char* name = attack->name;
    if (strcmp(name, "drop") == 0) {
        if (attack->renumber) move_by(history, message->frame, message->bytes, -1);
    } else if (strcmp(name, "dup") == 0) {
        twice(attack, message, history, out);
    } else if (strcmp(name, "swap") == 0 || strcmp(name, "hold") == 0) {
        put_aside(attack, message, history, held);
    } else if (strcmp(name, "replay") == 0) {
        return replay(attack, message, history, out);
    } else if (strcmp(name, "cut") == 0) {
        put_resized(message, -argument(attack, 0), out);
    } else if (strcmp(name, "extend") == 0) {
        put_resized(message, argument(attack, 0), out);
    } else if (strcmp(name, "forge") == 0) {
        int made = forge(attack, message, out);
        put_numbered(history, message->frame, message->bytes, out);
        return made;
    } else if (strcmp(name, "read") == 0) {
        put_read_request(attack, message, out);
        put_numbered(history, message->frame, message->bytes, out);
    } else if (strcmp(name, "insert") == 0) {
        put_inserted(attack, message, out);
        put_numbered(history, message->frame, message->bytes, out);
    } else if (strcmp(name, "end") == 0) {
        const size_t n = (size_t)argument(attack, 0);
        put(out, message->bytes, n < message->frame->length ? n : message->frame->length);
        held->end = 1;
    } else if (strcmp(name, "flip") == 0 || strcmp(name, "set") == 0) {
        size_t at = out->size;
        put_numbered(history, message->frame, message->bytes, out);
        return change(attack, message, out->data + at);
    } else {
        put_numbered(history, message->frame, message->bytes, out);
    }
    return 1;
}

/* Puts into out what becomes of the message. Returns whether it was attacked. */
static int is_target(const struct attack* attack, const struct message* message) {
    if (attack->sender != message->sender || attack->receiver != message->receiver) return 0;
    if (!attack->kind[0]) return attack->number == message->number;
    return attack->number <= message->number && strcmp(attack->kind, message->frame->kind) == 0;
}

static int apply(struct attack* attack, const struct message* message, struct history* history,
                 struct held* held, struct bytes* out) {
    int hit = 0, swapped = held->bytes.size && held->behind_next;
    size_t before = out->size;
    if (!attack->active) {
        put(out, message->bytes, message->frame->length);
        return 0;
    }
    if (strcmp(attack->name, "lie") == 0) {
        put(out, message->bytes, message->frame->length);
        return lie(attack, message, out->data + before);
    }
    if (strcmp(attack->name, "mirror") == 0) {
        int done = mirror(attack, message, held, out);
        if (done != 2) put(held->bytes.size ? &held->bytes : out, message->bytes, message->frame->length);
        return done;
    }
    if (!attack->done && is_target(attack, message)) {
        attack->done = 1;
        hit = attack_message(attack, message, history, held, out);
        if (!hit && out->size == before) put_numbered(history, message->frame, message->bytes, out);
    } else {
        put_numbered(history, message->frame, message->bytes, out);
        if (swapped) {
            release(held, out);
            if (attack->renumber) history->numbering_count = 0;
        }
    }
    remember(history, message);
    return hit;
}
