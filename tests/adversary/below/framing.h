/* How the MPI libraries cut a TCP connection into messages of their own, as far as an attacker has to know
 * it.
 *
 *   xnet     libfabric's tcp provider (MPICH 5): a connection message in each direction, then frames with a
 *            base header
 *   btl      Open MPI's ob1 over btl tcp: a greeting in each direction, then btl headers, each before a header
 *            of ob1's
 *   uct      UCX's tcp transport (MPICH 4): a magic number from the side that connects, then active messages
 *   records  MPIsec's own, where the library's connections are authenticated
 *            (transport/authenticated_stream.hpp): a hello in each direction, then records. Payload is what is
 *            behind a record's header: the content, its tag, and what passes sealed */
#pragma once
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FIELDS = 24, NOT_THERE = -1 };

struct field {
    char name[12];
    int offset, size;
};

/* One message of the MPI library. Offsets are from its first byte. */
struct frame {
    char kind[16];
    size_t length; /* 0: more bytes are needed to tell */
    int header;    /* bytes before the payload */
    struct field fields[MOST_FIELDS];
    int count;
};

struct framing {
    const char* name;
    /* Describes the frame at the beginning of n bytes; begun: whether one has passed in this direction
     * before. Returns 0, or -1 when these bytes are no frame. */
    int (*parse)(const uint8_t* bytes, size_t n, int begun, struct frame* frame);
    const char* length_field; /* what has to change with the length of the payload */
};

static uint64_t load(const uint8_t* at, int size) {
    uint64_t value = 0;
    memcpy(&value, at, (size_t)size);
    return value;
}

static void add_field(struct frame* frame, const char* name, int offset, int size) {
    if (frame->count == MOST_FIELDS) return;
    struct field* field = &frame->fields[frame->count++];
    strncpy(field->name, name, sizeof field->name - 1);
    field->offset = offset;
    field->size = size;
}

static const struct field* find_field(const struct frame* frame, const char* name) {
    for (int i = 0; i < frame->count; ++i)
        if (strcmp(frame->fields[i].name, name) == 0) return &frame->fields[i];
    return NULL;
}

/* What is not named gets names of its own, in words of 8 bytes. */
static void add_words(struct frame* frame, int from, int to) {
    for (int number = 0; from < to; from += 8, ++number) {
        char name[12] = "word0";
        name[4] = (char)('0' + number % 10);
        add_field(frame, name, from, to - from < 8 ? to - from : 8);
    }
}

static int parse_xnet(const uint8_t* bytes, size_t n, int begun, struct frame* frame) {
    static const char* const kinds[] = {"msg",   "tag",     "read-req", "read-rsp",
                                        "write", "tag-rts", "cts",      "data"};
    enum { CONNECT_HEADER = 32, BASE_HEADER = 16, HAS_DATA = 1 };
    if (!begun) {
        if (n < CONNECT_HEADER) return 0;
        strcpy(frame->kind, "connect");
        frame->header = CONNECT_HEADER;
        frame->length = (size_t)CONNECT_HEADER + (size_t)(bytes[2] << 8 | bytes[3]);
        add_field(frame, "version", 0, 1);
        add_field(frame, "type", 1, 1);
        add_field(frame, "seg_size", 2, 2);
        add_words(frame, 4, CONNECT_HEADER);
        return 0;
    }
    if (n < BASE_HEADER) return 0;
    uint64_t length = load(bytes + 8, 8);
    int header = bytes[6];
    if (bytes[1] >= sizeof kinds / sizeof *kinds || header < BASE_HEADER || length < (uint64_t)header)
        return -1;
    strcpy(frame->kind, kinds[bytes[1]]);
    frame->header = header;
    frame->length = length;
    add_field(frame, "version", 0, 1);
    add_field(frame, "op", 1, 1);
    add_field(frame, "flags", 2, 2);
    add_field(frame, "op_data", 4, 1);
    add_field(frame, "iov_count", 5, 1);
    add_field(frame, "hdr_size", 6, 1);
    add_field(frame, "id", 7, 1);
    add_field(frame, "length", 8, 8);
    int at = BASE_HEADER;
    if (load(bytes + 2, 2) & HAS_DATA) {
        add_field(frame, "source", at, 8); /* MPICH's: the sender's rank in the communicator */
        at += 8;
    }
    if (bytes[1] == 1 || bytes[1] == 5) {
        /* MPICH's match bits: the tag below, the communicator's context above */
        add_field(frame, "tag", at, 4);
        add_field(frame, "context", at + 4, 4);
        at += 8;
    }
    add_words(frame, at, header);
    return 0;
}

enum { OB1_MATCH = 65, OB1_RNDV, OB1_RGET, OB1_ACK, OB1_NACK, OB1_FRAG, OB1_GET, OB1_PUT, OB1_FIN, OB1_CID };

static void add_match(struct frame* frame, int at) {
    add_field(frame, "context", at + 2, 2);
    add_field(frame, "source", at + 4, 4);
    add_field(frame, "tag", at + 8, 4);
    add_field(frame, "seq", at + 12, 2);
}

static int ob1_header(struct frame* frame, int type, int size) {
    enum { AT = 8 };
    static const char* const kinds[] = {"match", "rndv", "rget", "ack", "nack",
                                        "frag",  "get",  "put",  "fin", "cid"};
    if (type < OB1_MATCH || type > OB1_CID) return AT;
    strcpy(frame->kind, kinds[type - OB1_MATCH]);
    add_field(frame, "ob1_type", AT, 1);
    add_field(frame, "ob1_flags", AT + 1, 1);
    int end = AT + size;
    if (type == OB1_MATCH || type == OB1_RNDV || type == OB1_RGET) {
        add_match(frame, AT);
        if (type == OB1_MATCH) return size < 14 ? end : AT + 14;
        if (type == OB1_RNDV) end = AT + 32;
        if (type == OB1_RGET) end = AT + 56;
        add_words(frame, AT + 16, end);
    } else if (type == OB1_CID) {
        add_words(frame, AT + 8, AT + 32);
        add_match(frame, AT + 32);
        end = AT + 32 + 14;
    } else {
        if (type == OB1_FRAG && end > AT + 32) end = AT + 32;
        add_words(frame, AT + 8, end);
    }
    return end > AT + size ? AT + size : end;
}

static int parse_btl(const uint8_t* bytes, size_t n, int begun, struct frame* frame) {
    enum { GREETING = 24, HEADER = 8, PUT = 2, FIN = 4 };
    if (!begun) {
        if (n < GREETING) return 0;
        strcpy(frame->kind, "connect");
        frame->header = (int)(frame->length = GREETING);
        add_field(frame, "process", 0, 8);
        add_field(frame, "magic", 8, 8);
        return 0;
    }
    if (n < HEADER) return 0;
    uint32_t size = (uint32_t)load(bytes + 4, 4);
    if (bytes[1] < 1 || bytes[1] > FIN) return -1;
    add_field(frame, "btl_tag", 0, 1);
    add_field(frame, "btl_type", 1, 1);
    add_field(frame, "btl_count", 2, 2);
    add_field(frame, "length", 4, 4);
    frame->header = HEADER;
    if (bytes[1] == PUT) {
        int segments = 16 * (int)load(bytes + 2, 2);
        strcpy(frame->kind, "btl-put");
        frame->header = HEADER + segments;
        frame->length = (size_t)frame->header + size;
        add_words(frame, HEADER, frame->header);
    } else {
        strcpy(frame->kind, bytes[1] == FIN ? "btl-fin" : "other");
        frame->length = HEADER + (size_t)size;
        if (size >= 2) frame->header = ob1_header(frame, bytes[0], (int)size);
    }
    return 0;
}

static int parse_uct(const uint8_t* bytes, size_t n, int begun, struct frame* frame) {
    enum {
        MAGIC = 8,
        HEADER = 5,
        EAGER_ONLY = 2,
        EAGER_FIRST,
        EAGER_MIDDLE,
        EAGER_SYNC_ONLY = 6,
        RTS = 9,
        CONNECT = 32,
        PUT,
        PUT_ACK
    };
    static const uint64_t magic = 0xCAFEBABE12345678ull;
    if (n < MAGIC && !begun) return 0;
    if (!begun && load(bytes, MAGIC) == magic) {
        strcpy(frame->kind, "magic");
        frame->header = (int)(frame->length = MAGIC);
        add_field(frame, "magic", 0, MAGIC);
        return 0;
    }
    if (n < HEADER) return 0;
    int id = bytes[0];
    size_t size = load(bytes + 1, 4);
    if (id > PUT_ACK) return -1;
    if (id == PUT && n < HEADER + 16) return 0;
    strcpy(frame->kind, "am00");
    frame->kind[2] = (char)('0' + id / 10);
    frame->kind[3] = (char)('0' + id % 10);
    frame->length = HEADER + size + (id == PUT ? load(bytes + HEADER + 8, 8) : 0);
    frame->header = HEADER;
    add_field(frame, "am_id", 0, 1);
    add_field(frame, "length", 1, 4);
    if (id == EAGER_ONLY || id == EAGER_FIRST || id == EAGER_SYNC_ONLY) {
        /* MPICH's tag: tag (32), source rank (16), context (16) */
        add_field(frame, "tag", HEADER, 4);
        add_field(frame, "source", HEADER + 4, 2);
        add_field(frame, "context", HEADER + 6, 2);
        frame->header = HEADER + (id == EAGER_ONLY ? 8 : 24);
        add_words(frame, HEADER + 8, frame->header);
    } else if (id == EAGER_MIDDLE) {
        frame->header = HEADER + 16;
        add_words(frame, HEADER, frame->header);
    } else {
        frame->header = HEADER + (int)(size > 48 ? 48 : size);
        add_words(frame, HEADER, frame->header);
    }
    if ((size_t)frame->header > frame->length) frame->header = (int)frame->length;
    return 0;
}

static int parse_records(const uint8_t* bytes, size_t n, int begun, struct frame* frame) {
    enum { MAGIC = 8, HELLO = 32, HEADER = 8, TAG = 16, MOST_CONTENT = 1 << 16 };
    static const uint32_t early = 1u << 31, more = 1u << 30;
    if (!begun) {
        if (memcmp(bytes, "MPIsecC1", n < MAGIC ? n : MAGIC) != 0) return -1;
        if (n < HELLO) return 0;
        strcpy(frame->kind, "hello");
        frame->header = (int)(frame->length = HELLO);
        add_field(frame, "magic", 0, MAGIC);
        add_field(frame, "nonce", MAGIC, HELLO - MAGIC);
        return 0;
    }
    if (n < HEADER) return 0;
    const uint32_t word = (uint32_t)load(bytes, 4);
    const int content = (int)(word & ~(early | more)), passing = (int)load(bytes + 4, 4);
    if (content < 1 || content > MOST_CONTENT || passing < 0) return -1;
    strcpy(frame->kind, passing ? "sealed" : word & early ? "early" : "record");
    frame->header = HEADER;
    frame->length = (size_t)(HEADER + content + TAG) + (size_t)passing;
    add_field(frame, "length", 0, 4); /* with the flags in its highest bits */
    add_field(frame, "passing", 4, 4);
    add_field(frame, "content", HEADER, content);
    add_field(frame, "tag", HEADER + content, TAG);
    if (passing) add_field(frame, "sealed", HEADER + content + TAG, passing);
    return 0;
}

static const struct framing framings[] = {
    {"xnet", parse_xnet, "length"},
    {"btl", parse_btl, "length"},
    {"uct", parse_uct, "length"},
    {"records", parse_records, "length"},
};
