/* M8: any datatype. Each case sends some layout as itself, as packed bytes and as contiguous elements, and
 * receives it as itself and as contiguous elements; what lies in the gaps of a receive buffer is not touched.
 */
#include "harness.h"
#include "rules.h"

/* A layout: count elements of type, whose plain content is `ints` integers; extent bytes are enough for a
 * buffer that begins at `begin`. */
struct layout {
    const char* name;
    MPI_Datatype type;
    int count;
    size_t room, begin;
    int ints;
};

static struct layout vector(int blocks) {
    struct layout it = {"vector", MPI_DATATYPE_NULL, 1, (size_t)blocks * 5 * sizeof(int), 0, blocks * 3};
    OK(MPI_Type_vector(blocks, 3, 5, MPI_INT, &it.type));
    return it;
}
static struct layout indexed(int blocks) {
    struct layout it = {"indexed", MPI_DATATYPE_NULL, 1, (size_t)(blocks * 4 + 4) * sizeof(int), 0, 0};
    int *lengths = memory((size_t)blocks * sizeof(int)), *places = memory((size_t)blocks * sizeof(int));
    for (int i = 0; i < blocks; ++i) {
        lengths[i] = i % 3;
        places[i] = (blocks - 1 - i) * 4; /* backwards: the first block lies last */
        it.ints += lengths[i];
    }
    OK(MPI_Type_indexed(blocks, lengths, places, MPI_INT, &it.type));
    free(lengths), free(places);
    return it;
}
static struct layout structure(int count) {
    struct layout it = {"struct of one and four integers, resized",
                        MPI_DATATYPE_NULL,
                        count,
                        (size_t)count * 40,
                        0,
                        count * 5};
    int lengths[] = {1, 4};
    MPI_Aint places[] = {4, 16};
    MPI_Datatype types[] = {MPI_INT, MPI_INT}, raw;
    OK(MPI_Type_create_struct(2, lengths, places, types, &raw));
    OK(MPI_Type_create_resized(raw, 0, 40, &it.type));
    OK(MPI_Type_free(&raw));
    return it;
}
static struct layout negative(int count) {
    struct layout it = {
        "negative lower bound", MPI_DATATYPE_NULL, count, (size_t)count * 16 + 32, 16, count * 2};
    int lengths[] = {1, 1};
    MPI_Aint places[] = {-8, 4};
    MPI_Datatype types[] = {MPI_INT, MPI_INT}, raw;
    OK(MPI_Type_create_struct(2, lengths, places, types, &raw));
    OK(MPI_Type_create_resized(raw, -8, 16, &it.type));
    OK(MPI_Type_free(&raw));
    return it;
}
static struct layout subarray(int side) {
    struct layout it = {"subarray", MPI_DATATYPE_NULL, 1, (size_t)side * (size_t)side * sizeof(int), 0, 0};
    int sides[] = {side, side}, part[] = {side / 2, side / 3}, start[] = {1, 2};
    it.ints = part[0] * part[1];
    OK(MPI_Type_create_subarray(2, sides, part, start, MPI_ORDER_C, MPI_INT, &it.type));
    return it;
}
static struct layout nested(int count) {
    struct layout inner = vector(4),
                  it = {"vectors of vectors", MPI_DATATYPE_NULL, count, 0, 0, count * 3 * inner.ints};
    OK(MPI_Type_create_hvector(3, 1, 100, inner.type, &it.type));
    OK(MPI_Type_free(&inner.type));
    it.room = (size_t)count * 300 + 100;
    return it;
}
static struct layout contiguous(int count) {
    struct layout it = {"contiguous", MPI_DATATYPE_NULL, count, (size_t)count * 12, 0, count * 3};
    OK(MPI_Type_contiguous(3, MPI_INT, &it.type));
    return it;
}

/* The integers in the order of the type map. */
static void unpack(const struct layout* it, const unsigned char* buffer, int* out) {
    int packed_bytes, at = 0, from = 0;
    OK(MPI_Pack_size(it->count, it->type, MPI_COMM_SELF, &packed_bytes));
    char* packed = memory((size_t)packed_bytes);
    OK(MPI_Pack((void*)(buffer + it->begin), it->count, it->type, packed, packed_bytes, &at, MPI_COMM_SELF));
    OK(MPI_Unpack(packed, at, &from, out, it->ints, MPI_INT, MPI_COMM_SELF));
    free(packed);
}

enum { AS_ITSELF, AS_CONTIGUOUS, AS_PACKED, FORMS };

static void send(const struct layout* it, const unsigned char* buffer, int form, int peer) {
    int* values = memory((size_t)it->ints * sizeof(int));
    unpack(it, buffer, values);
    if (form == AS_ITSELF) {
        OK(MPI_Send(buffer + it->begin, it->count, it->type, peer, 90, MPI_COMM_WORLD));
    } else if (form == AS_CONTIGUOUS) {
        OK(MPI_Send(values, it->ints, MPI_INT, peer, 90, MPI_COMM_WORLD));
    } else {
        int room, at = 0;
        OK(MPI_Pack_size(it->count, it->type, MPI_COMM_WORLD, &room));
        char* packed = memory((size_t)room);
        OK(MPI_Pack((void*)(buffer + it->begin), it->count, it->type, packed, room, &at, MPI_COMM_WORLD));
        OK(MPI_Send(packed, at, MPI_PACKED, peer, 90, MPI_COMM_WORLD));
        free(packed);
    }
    free(values);
}

/* `sent`: what the sender's buffer held, to be compared in the order of the type map; gaps must keep 0xC3. */
static void receive(const struct layout* it, const unsigned char* sent, int form, int peer) {
    int *expected = memory((size_t)it->ints * sizeof(int)), *values = memory((size_t)it->ints * sizeof(int)),
        got = -1;
    MPI_Status status;
    unpack(it, sent, expected);
    if (form == AS_ITSELF) {
        unsigned char *buffer = memory(it->room), *model = memory(it->room);
        memset(buffer, 0xC3, it->room), memset(model, 0xC3, it->room);
        OK(MPI_Recv(buffer + it->begin, it->count, it->type, peer, 90, MPI_COMM_WORLD, &status));
        OK(MPI_Get_count(&status, it->type, &got));
        CHECK(got == it->count, "%s: the status counts %d of %d", it->name, got, it->count);
        unpack(it, buffer, values);
        int bytes = it->ints * (int)sizeof(int), at = 0;
        OK(MPI_Unpack(expected, bytes, &at, model + it->begin, it->count, it->type, MPI_COMM_SELF));
        CHECK(memcmp(buffer, model, it->room) == 0, "%s: a gap of the receive buffer was written", it->name);
        free(buffer), free(model);
    } else {
        OK(MPI_Recv(values, it->ints, MPI_INT, peer, 90, MPI_COMM_WORLD, &status));
    }
    OK(MPI_Get_elements(&status, it->type, &got));
    CHECK(got == it->ints, "%s: the status has %d elements of %d", it->name, got, it->ints);
    CHECK(memcmp(values, expected, (size_t)it->ints * sizeof(int)) == 0,
          "%s: other integers arrived than were sent", it->name);
    free(expected), free(values);
}

static void run(struct layout it, int peer) {
    OK(MPI_Type_commit(&it.type));
    unsigned char* buffer = memory(it.room);
    fill(buffer, it.room, (uint64_t)it.ints);
    for (int form = 0; form < FORMS; ++form) {
        for (int to = 0; to < (form == AS_PACKED ? 1 : 2); ++to) {
            for (int turn = 0; turn < 2; ++turn) {
                if ((rank < peer) == (turn == 0))
                    send(&it, buffer, form, peer);
                else
                    receive(&it, buffer, to, peer);
            }
        }
    }
    OK(MPI_Type_free(&it.type));
    free(buffer);
}

/* Absolute addresses: MPI_BOTTOM. */
static void bottom(int peer) {
    int first = rank * 3 + 1, second[3] = {rank, rank + 1, rank + 2};
    int lengths[] = {1, 3};
    MPI_Aint places[2];
    MPI_Datatype type;
    OK(MPI_Get_address(&first, &places[0]));
    OK(MPI_Get_address(second, &places[1]));
    OK(MPI_Type_create_hindexed(2, lengths, places, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    if (rank < peer) OK(MPI_Send(MPI_BOTTOM, 1, type, peer, 91, MPI_COMM_WORLD));
    if (rank > peer) {
        OK(MPI_Recv(MPI_BOTTOM, 1, type, peer, 91, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(first == peer * 3 + 1 && second[0] == peer && second[2] == peer + 2,
              "MPI_BOTTOM: wrong integers arrived");
    }
    OK(MPI_Type_free(&type));
}

/* No bytes at all, in several ways; still a message with a tag. And a message that ends inside a structure.
 */
static void empty_and_partial(int peer) {
    struct layout it = structure(3);
    MPI_Datatype nothing;
    MPI_Status status;
    int values[15] = {0}, got = -1;
    OK(MPI_Type_commit(&it.type));
    OK(MPI_Type_contiguous(0, MPI_INT, &nothing));
    OK(MPI_Type_commit(&nothing));
    unsigned char buffer[120];
    if (rank < peer) {
        OK(MPI_Send(NULL, 0, it.type, peer, 92, MPI_COMM_WORLD));
        OK(MPI_Send(NULL, 5, nothing, peer, 93, MPI_COMM_WORLD));
        OK(MPI_Send(values, 7, MPI_INT, peer, 94, MPI_COMM_WORLD));
    } else {
        OK(MPI_Recv(buffer, 3, it.type, peer, 92, MPI_COMM_WORLD, &status));
        CHECK_STATUS(&status, peer, 92, 0);
        OK(MPI_Recv(NULL, 5, nothing, peer, 93, MPI_COMM_WORLD, &status));
        CHECK(status.MPI_TAG == 93 && status.MPI_SOURCE == peer, "the status of an empty message is wrong");
        OK(MPI_Recv(buffer, 3, it.type, peer, 94, MPI_COMM_WORLD, &status));
        OK(MPI_Get_elements(&status, it.type, &got));
        CHECK(got == 7, "a message of 7 integers into structures of 5 has %d elements", got);
        OK(MPI_Get_count(&status, it.type, &got));
        CHECK(got == MPI_UNDEFINED, "7 integers are no whole number of structures, the status counts %d",
              got);
    }
    OK(MPI_Type_free(&it.type));
    OK(MPI_Type_free(&nothing));
}

void rule_datatypes(void) {
    for (int round = 1; round<size; round += size> 2 ? size - 2 : 1) {
        int peer = partner_in(round);
        if (peer == rank) continue;
        /* small, around the threshold and large: 65536 bytes are 16384 integers */
        static const int scale[] = {1, 1092, 5462, 40000};
        for (int i = 0; i < 4; ++i) {
            int n = scale[i];
            run(vector(n), peer);
            run(indexed(3 * n), peer);
            run(structure(n), peer);
            run(negative(n), peer);
            run(nested((n + 11) / 12), peer);
            run(contiguous(n), peer);
        }
        run(subarray(30), peer);
        run(subarray(600), peer);
        bottom(peer);
        empty_and_partial(peer);
    }
}
