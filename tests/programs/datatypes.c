/* Datatypes with holes, of every constructor, and memory laid out by them. */
#include "program.h"

struct type types[MOST_TYPES];
/* Those that the program has freed, while requests may still use them. */
static struct type freed[MOST_TYPES];
static int freed_count;

const struct type* type_with(MPI_Datatype handle) {
    for (int i = 0; i < MOST_TYPES; ++i)
        if (types[i].made && types[i].type == handle) return &types[i];
    for (int i = freed_count - 1; i >= 0 && i >= freed_count - MOST_TYPES; --i)
        if (freed[i % MOST_TYPES].type == handle) return &freed[i % MOST_TYPES];
    return NULL;
}

void predefine_types(void) {
    const struct {
        MPI_Datatype type;
        int size, extent;
    } known[PREDEFINED] = {{MPI_BYTE, 1, 1},
                           {MPI_INT, sizeof(int), sizeof(int)},
                           {MPI_DOUBLE, sizeof(double), sizeof(double)},
                           {MPI_SHORT, sizeof(short), sizeof(short)},
                           {MPI_LONG_LONG, sizeof(long long), sizeof(long long)},
                           {MPI_FLOAT, sizeof(float), sizeof(float)},
                           {MPI_CHAR, 1, 1},
                           {MPI_UNSIGNED, sizeof(unsigned), sizeof(unsigned)},
                           {MPI_2INT, 2 * sizeof(int), 2 * sizeof(int)},
                           {MPI_DOUBLE_INT, sizeof(double) + sizeof(int), 2 * sizeof(double)}};
    int loses_padded = ON_MPICH == 4; /* it loses data of MPI_DOUBLE_INT */
    for (int i = 0; i < PREDEFINED - loses_padded; ++i)
        types[i] = (struct type){.type = known[i].type,
                                 .class = i,
                                 .units = 1,
                                 .unit_size = known[i].size,
                                 .high = known[i].size,
                                 .extent = known[i].extent,
                                 .made = 1};
    if (loses_padded) types[9] = types[8];
}

struct type* type_of(const struct step* step, const char* key) {
    long id = value(step, key, 0);
    if (id < 0 || id >= MOST_TYPES) give_up("line %d: %s=%ld", step->number, key, id);
    return types[id].made ? &types[id] : NULL;
}

/* ---- making them */
struct blocks {
    int n, lengths[MOST_UNITS];
    MPI_Aint at[MOST_UNITS]; /* in bytes */
};

static int compare_offsets(const void* a, const void* b) {
    MPI_Aint x = *(const MPI_Aint*)a, y = *(const MPI_Aint*)b;
    return x < y ? -1 : x > y;
}

/* Where the units lie. 0 when there are too many or none, or some overlap: such a type must not receive. */
static int lay_out(struct type* type, const struct type* base, const struct blocks* blocks) {
    MPI_Aint sorted[MOST_UNITS];
    type->class = base->class;
    type->unit_size = base->unit_size;
    type->units = 0;
    for (int b = 0; b < blocks->n; ++b)
        for (int j = 0; j < blocks->lengths[b]; ++j)
            for (int u = 0; u < base->units; ++u) {
                if (type->units == MOST_UNITS) return 0;
                type->offsets[type->units++] = blocks->at[b] + j * base->extent + base->offsets[u];
            }
    if (type->units == 0) return 0;
    memcpy(sorted, type->offsets, sizeof sorted);
    qsort(sorted, (size_t)type->units, sizeof *sorted, compare_offsets);
    for (int i = 1; i < type->units; ++i)
        if (sorted[i] - sorted[i - 1] < type->unit_size) return 0;
    type->low = sorted[0];
    type->high = sorted[type->units - 1] + type->unit_size;
    return 1;
}

/* Blocks from the step's lists: lengths, and displacements in extents of the base (or in bytes). */
static void listed_blocks(const struct step* step, struct blocks* blocks, MPI_Aint unit) {
    blocks->n = entries(step, "at");
    if (blocks->n > MOST_UNITS) blocks->n = MOST_UNITS;
    for (int i = 0; i < blocks->n; ++i) {
        blocks->at[i] = entry(step, "at", i, 0) * unit;
        blocks->lengths[i] = (int)entry(step, "lengths", i, 1);
    }
}

static void strided_blocks(const struct step* step, struct blocks* blocks, MPI_Aint unit) {
    blocks->n = (int)value(step, "n", 1);
    if (blocks->n > MOST_UNITS) blocks->n = MOST_UNITS;
    for (int i = 0; i < blocks->n; ++i) {
        blocks->at[i] = i * value(step, "stride", 1) * unit;
        blocks->lengths[i] = (int)value(step, "length", 1);
    }
}

static int make_strided(const struct step* step, const struct type* base, struct type* type) {
    int bytes = is(step, "kind", "hvector"), contiguous = is(step, "kind", "contiguous");
    long stride = value(step, "stride", 1), length = value(step, "length", 1);
    struct blocks blocks;
    strided_blocks(step, &blocks, bytes ? 1 : base->extent);
    if (contiguous)
        for (int i = 0; i < blocks.n; ++i) blocks.at[i] = i * base->extent, blocks.lengths[i] = 1;
    if (!lay_out(type, base, &blocks)) return 0;
    int n = blocks.n;
#ifdef HAVE_COUNT_VARIANTS
    if (value(step, "large", 0)) {
        if (contiguous) return !OK(MPI_Type_contiguous_c, (n, base->type, &type->type));
        if (bytes) return !OK(MPI_Type_create_hvector_c, (n, length, stride, base->type, &type->type));
        return !OK(MPI_Type_vector_c, (n, length, stride, base->type, &type->type));
    }
#endif
    if (contiguous) return !OK(MPI_Type_contiguous, (n, base->type, &type->type));
    if (bytes) return !OK(MPI_Type_create_hvector, (n, (int)length, stride, base->type, &type->type));
    return !OK(MPI_Type_vector, (n, (int)length, (int)stride, base->type, &type->type));
}

static int make_indexed(const struct step* step, const struct type* base, struct type* type) {
    char kind[32];
    entry_text(step, "kind", 0, "", kind);
    int bytes = kind[0] == 'h', same = strstr(kind, "block") != NULL, at[MOST_UNITS];
    struct blocks blocks;
    listed_blocks(step, &blocks, bytes ? 1 : base->extent);
    for (int i = 0; i < blocks.n; ++i) {
        at[i] = (int)entry(step, "at", i, 0);
        if (same) blocks.lengths[i] = (int)value(step, "lengths", 1);
    }
    if (!lay_out(type, base, &blocks)) return 0;
    int n = blocks.n, *lengths = blocks.lengths;
    if (bytes && same)
        return !OK(MPI_Type_create_hindexed_block, (n, lengths[0], blocks.at, base->type, &type->type));
    if (bytes) return !OK(MPI_Type_create_hindexed, (n, lengths, blocks.at, base->type, &type->type));
    if (same) return !OK(MPI_Type_create_indexed_block, (n, lengths[0], at, base->type, &type->type));
    return !OK(MPI_Type_indexed, (n, lengths, at, base->type, &type->type));
}

/* Members of several types: a class of its own. Of one type: like hindexed. */
static int make_struct(const struct step* step, const struct type* base, struct type* type) {
    struct blocks blocks;
    MPI_Datatype list[MOST_UNITS];
    listed_blocks(step, &blocks, 1);
    int mixed = 0;
    MPI_Aint end = -1000000;
    for (int i = 0; i < blocks.n; ++i) {
        long id = entry(step, "bases", i, 0);
        const struct type* member = id >= 0 && id < MOST_TYPES ? &types[id] : NULL;
        if (!member || !member->made || blocks.lengths[i] < 1) return 0;
        mixed |= member->class != base->class || member->extent != base->extent || member->units != 1;
        if (blocks.at[i] + member->low < end) return 0; /* in order, without overlap */
        end = blocks.at[i] + (blocks.lengths[i] - 1) * member->extent + member->high;
        if (member->low < 0 || member->high > member->extent) return 0;
        list[i] = member->type;
    }
    if (!mixed && !lay_out(type, base, &blocks)) return 0;
    if (OK(MPI_Type_create_struct, (blocks.n, blocks.lengths, blocks.at, list, &type->type))) return 0;
    if (!mixed) return 1;
    MPI_Aint low, span;
    OK(MPI_Type_get_true_extent, (type->type, &low, &span));
    type->class = STRUCTURES + (int)value(step, "type", 0);
    type->units = 1;
    type->unit_size = (int)span;
    type->offsets[0] = type->low = low;
    type->high = low + span;
    return 1;
}

static int make_resized(const struct step* step, const struct type* base, struct type* type) {
    long low = value(step, "low", 0), more = value(step, "more", 0);
    MPI_Aint extent = base->high - base->low + more;
    struct blocks blocks = {1, {1}, {0}};
    if (!lay_out(type, base, &blocks)) return 0;
#ifdef HAVE_COUNT_VARIANTS
    if (value(step, "large", 0))
        return !OK(MPI_Type_create_resized_c, (base->type, low, extent, &type->type));
#endif
    return !OK(MPI_Type_create_resized, (base->type, low, extent, &type->type));
}

static int make_duplicate(const struct step* step, const struct type* base, struct type* type) {
    (void)step;
    struct blocks blocks = {1, {1}, {0}};
    return lay_out(type, base, &blocks) && !OK(MPI_Type_dup, (base->type, &type->type));
}

/* Two dimensions: `sizes`, of which `parts` from `starts` on. */
static int make_subarray(const struct step* step, const struct type* base, struct type* type) {
    int sizes[2], parts[2], starts[2], fortran = is(step, "order", "fortran");
    struct blocks blocks = {0};
    for (int i = 0; i < 2; ++i) {
        sizes[i] = (int)entry(step, "sizes", i, 1);
        parts[i] = (int)entry(step, "parts", i, 1);
        starts[i] = (int)entry(step, "starts", i, 0);
        if (parts[i] < 1 || starts[i] < 0 || starts[i] + parts[i] > sizes[i]) return 0;
    }
    int slow = fortran ? 1 : 0, fast = 1 - slow;
    if (parts[slow] > MOST_UNITS) return 0;
    for (int i = 0; i < parts[slow]; ++i) {
        blocks.at[i] = ((starts[slow] + i) * sizes[fast] + starts[fast]) * base->extent;
        blocks.lengths[blocks.n++] = parts[fast];
    }
    return lay_out(type, base, &blocks) &&
           !OK(MPI_Type_create_subarray,
               (2, sizes, parts, starts, fortran ? MPI_ORDER_FORTRAN : MPI_ORDER_C, base->type, &type->type));
}

/* One dimension, dealt out in blocks of `length` to `n` processes, of which this is number `which`. */
static int make_darray(const struct step* step, const struct type* base, struct type* type) {
    int size = (int)value(step, "size", 8), n = (int)value(step, "n", 2),
        length = (int)value(step, "length", 1);
    int which = (int)value(step, "which", 0), how = MPI_DISTRIBUTE_CYCLIC;
    struct blocks blocks = {0};
    if (n < 1 || length < 1 || which >= n) return 0;
    for (int start = which * length; start < size && blocks.n < MOST_UNITS; start += n * length) {
        blocks.at[blocks.n] = start * base->extent;
        blocks.lengths[blocks.n++] = start + length > size ? size - start : length;
    }
    return lay_out(type, base, &blocks) &&
           !OK(MPI_Type_create_darray,
               (n, which, 1, &size, &how, &length, &n, MPI_ORDER_C, base->type, &type->type));
}

static const struct {
    const char* kind;
    int (*make)(const struct step*, const struct type*, struct type*);
} constructors[] = {
    {"contiguous", make_strided},     {"vector", make_strided},    {"hvector", make_strided},
    {"indexed", make_indexed},        {"hindexed", make_indexed},  {"indexed_block", make_indexed},
    {"hindexed_block", make_indexed}, {"struct", make_struct},     {"resized", make_resized},
    {"duplicate", make_duplicate},    {"subarray", make_subarray}, {"darray", make_darray},
};

static void make_type(const struct step* step) {
    struct type *base = type_of(step, "bases"), *type = &types[value(step, "type", MOST_TYPES - 1)];
    struct type made = {.type = MPI_DATATYPE_NULL};
    if (base && !type->made)
        for (size_t i = 0; i < sizeof constructors / sizeof *constructors; ++i)
            if (is(step, "kind", constructors[i].kind)) made.made = constructors[i].make(step, base, &made);
    if (!made.made) {
        say(" skipped");
        return;
    }
    MPI_Aint low, true_low, true_extent;
    int size;
    OK(MPI_Type_commit, (&made.type));
    OK(MPI_Type_get_extent, (made.type, &low, &made.extent));
    OK(MPI_Type_get_true_extent, (made.type, &true_low, &true_extent));
    OK(MPI_Type_size, (made.type, &size));
    say(" low=%ld extent=%ld true=%ld+%ld size=%d", (long)low, (long)made.extent, (long)true_low,
        (long)true_extent, size);
    if (made.extent < made.high - made.low) { /* consecutive elements would overlap */
        OK(MPI_Type_free, (&made.type));
        say(" not kept");
        return;
    }
    *type = made;
}

int datatype_step(const struct step* step) {
    if (verb_is(step, "type")) {
        make_type(step);
    } else if (verb_is(step, "free_type")) {
        struct type* type = type_of(step, "type");
        if (!type || type < types + PREDEFINED) {
            say(" skipped");
            return 1;
        }
        freed[freed_count++ % MOST_TYPES] = *type;
        OK(MPI_Type_free, (&type->type));
        type->made = 0;
    } else {
        return 0;
    }
    return 1;
}

void free_types(void) {
    freed_count = 0;
    for (int i = PREDEFINED; i < MOST_TYPES; ++i) {
        if (types[i].made) OK(MPI_Type_free, (&types[i].type));
        types[i].made = 0;
    }
}

/* ---- memory */
enum { MARGIN = 64 };

void make_buffer(struct buffer* buffer, const struct type* type, long count) {
    MPI_Aint low = type->low, high = count > 0 ? type->high + (count - 1) * type->extent : type->low;
    buffer->layout = *type;
    buffer->count = count;
    buffer->size = (size_t)(high - low) + 2 * MARGIN;
    buffer->memory = malloc(buffer->size);
    if (!buffer->memory) give_up("no memory for %zu bytes", buffer->size);
    buffer->start = buffer->memory + MARGIN - low;
}

void free_buffer(struct buffer* buffer) {
    free(buffer->memory);
    memset(buffer, 0, sizeof *buffer);
}

/* Numbers small enough that sums are exact in whatever order. */
static void write_unit(unsigned char* at, int class, uint64_t random) {
    int number = (int)(random % 2001) - 1000;
    switch (class) {
        case 1:
            memcpy(at, &number, sizeof number);
            break;
        case 2:
            memcpy(at, &(double){number}, sizeof(double));
            break;
        case 3:
            memcpy(at, &(short){(short)(number / 100)}, sizeof(short));
            break;
        case 4:
            memcpy(at, &(long long){number * 1000003LL}, sizeof(long long));
            break;
        case 5:
            memcpy(at, &(float){(float)number}, sizeof(float));
            break;
        case 7:
            memcpy(at, &(unsigned){(unsigned)random}, sizeof(unsigned));
            break;
        case 8:
            memcpy(at, (int[]){number, (int)(random >> 32) % 100}, 2 * sizeof(int));
            break;
        case 9:
            memcpy(at, &(double){number}, sizeof(double));
            memcpy(at + sizeof(double), &(int){(int)(random >> 32) % 100}, sizeof(int));
            break;
        default:
            break; /* any bytes */
    }
}

void fill_buffer(struct buffer* buffer, uint64_t seed) {
    const struct type* type = &buffer->layout;
    uint64_t state = mix(seed, 1);
    for (size_t i = 0; i < buffer->size; i += 8) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        uint64_t word = state ^ (state >> 29);
        memcpy(buffer->memory + i, &word, buffer->size - i < 8 ? buffer->size - i : 8);
    }
    if (type->class == 0 || type->class == 6 || type->class >= STRUCTURES) return;
    for (long i = 0; i < buffer->count; ++i)
        for (int u = 0; u < type->units; ++u) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            write_unit(buffer->start + i * type->extent + type->offsets[u], type->class, state >> 7);
        }
}

uint64_t hash_buffer(const struct buffer* buffer) {
    uint64_t hash = buffer->size;
    size_t i = 0;
    for (uint64_t word; i + 8 <= buffer->size; i += 8) {
        memcpy(&word, buffer->memory + i, 8);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 32;
    }
    for (; i < buffer->size; ++i) hash = (hash ^ buffer->memory[i]) * 0x9e3779b97f4a7c15u;
    return hash ^ (hash >> 29);
}
