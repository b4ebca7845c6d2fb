#include "layout.h"

#include "schedule.h"

enum { UNTOUCHED = 0xC3 };

/* Where byte i of the content lies. */
static size_t offset_of(int kind, int n, int i) {
    switch (kind) {
        case STRIDED:
            return (size_t)(i / 48) * 64 + (size_t)(i % 48); /* blocks of 48 bytes, 64 apart */
        case RECORDS: {                                      /* 5 and 19 bytes in records of 32 */
            int in = i % 24;
            return (size_t)(i / 24) * 32 + (size_t)(in < 5 ? in : in + 3);
        }
        case BACKWARDS: { /* up to eight blocks, the first one last */
            int block = n / 8 ? n / 8 : 1, last = (n - 1) / block;
            return (size_t)(last - i / block) * (size_t)(block + 7) + (size_t)(i % block);
        }
        case INT_AND_DOUBLE:
            return (size_t)(i / 12) * 16 + (size_t)(i % 12 < 4 ? i % 12 : i % 12 + 4);
        default:
            return (size_t)i;
    }
}

static MPI_Datatype with_tail(MPI_Datatype whole, int blocks, size_t tail_at, int tail) {
    int lengths[] = {blocks, tail};
    MPI_Aint places[] = {0, (MPI_Aint)tail_at};
    MPI_Datatype types[] = {whole, MPI_BYTE}, type;
    OK(MPI_Type_create_struct(2, lengths, places, types, &type));
    OK(MPI_Type_free(&whole));
    return type;
}

static MPI_Datatype strided(int n) {
    MPI_Datatype vector;
    OK(MPI_Type_vector(n / 48, 48, 64, MPI_BYTE, &vector));
    return with_tail(vector, 1, (size_t)(n / 48) * 64, n % 48);
}

static MPI_Datatype records(int n) {
    int lengths[] = {5, 19}, rest = n % 24;
    MPI_Aint places[] = {0, 8};
    MPI_Datatype types[] = {MPI_BYTE, MPI_BYTE}, raw, record, whole;
    OK(MPI_Type_create_struct(2, lengths, places, types, &raw));
    OK(MPI_Type_create_resized(raw, 0, 32, &record));
    OK(MPI_Type_free(&raw));
    MPI_Aint tail = (MPI_Aint)(n / 24) * 32;
    int parts[] = {n / 24, rest < 5 ? rest : 5, rest < 5 ? 0 : rest - 5};
    MPI_Aint starts[] = {0, tail, tail + 8};
    MPI_Datatype of[] = {record, MPI_BYTE, MPI_BYTE};
    OK(MPI_Type_create_struct(3, parts, starts, of, &whole));
    OK(MPI_Type_free(&record));
    return whole;
}

static MPI_Datatype backwards(int n) {
    int lengths[16], count = 0, block = n / 8 ? n / 8 : 1;
    MPI_Aint places[16];
    for (int at = 0; at < n; at += block) {
        lengths[count] = n - at < block ? n - at : block;
        places[count++] = (MPI_Aint)offset_of(BACKWARDS, n, at);
    }
    MPI_Datatype type;
    OK(MPI_Type_create_hindexed(count, lengths, places, MPI_BYTE, &type));
    return type;
}

static MPI_Datatype int_and_double(void) {
    int lengths[] = {1, 1};
    MPI_Aint places[] = {0, 8};
    MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE}, type;
    OK(MPI_Type_create_struct(2, lengths, places, types, &type));
    return type;
}

void make_place(struct place* place, int kind, int n) {
    *place = (struct place){.kind = kind, .n = n, .count = 1, .own_type = 1};
    switch (kind) {
        case STRIDED:
            place->type = strided(n);
            break;
        case RECORDS:
            place->type = records(n);
            break;
        case BACKWARDS:
            place->type = backwards(n);
            break;
        case INT_AND_DOUBLE:
            place->type = int_and_double();
            place->count = n / 12;
            break;
        default:
            place->own_type = 0;
            place->type = kind == DOUBLES ? MPI_DOUBLE : MPI_BYTE;
            place->count = kind == DOUBLES ? n / 8 : n;
    }
    if (place->own_type) OK(MPI_Type_commit(&place->type));
    place->room = 2 * (size_t)n + 128; /* enough for every layout */
    place->buffer = memory(place->room);
    memset(place->buffer, UNTOUCHED, place->room);
}

void free_place(struct place* place) {
    if (place->own_type) OK(MPI_Type_free(&place->type));
    free(place->buffer);
    place->buffer = NULL;
}

static int is_plain(const struct place* place) {
    return place->kind == CONTIGUOUS || place->kind == DOUBLES;
}

void put_content(struct place* place, const unsigned char* content, int n) {
    if (is_plain(place)) {
        memcpy(place->buffer, content, (size_t)n);
        return;
    }
    for (int i = 0; i < n; ++i) place->buffer[offset_of(place->kind, place->n, i)] = content[i];
}

void get_content(const struct place* place, unsigned char* content, int n) {
    if (is_plain(place)) {
        memcpy(content, place->buffer, (size_t)n);
        return;
    }
    for (int i = 0; i < n; ++i) content[i] = place->buffer[offset_of(place->kind, place->n, i)];
}

void check_gaps(const struct place* place, int n) {
    unsigned char* covered = calloc(place->room, 1);
    if (is_plain(place)) {
        memset(covered, 1, (size_t)n);
    } else {
        for (int i = 0; i < n; ++i) covered[offset_of(place->kind, place->n, i)] = 1;
    }
    for (size_t i = 0; i < place->room; ++i)
        CHECK(covered[i] || place->buffer[i] == UNTOUCHED,
              "layout %d, %d of %d bytes: byte %zu in a gap was written", place->kind, n, place->n, i);
    free(covered);
}
