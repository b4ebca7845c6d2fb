/* M13: random views, memory types, hints and procedures against a model of the file: every rank writes its parts of
 * the file in some way, one rank compares the whole file with what it must hold, and every rank reads another
 * one's parts back in some way. MPISEC_LAB_ROUNDS: how often. */
#include <unistd.h>

#include "harness.h"
#include "rules.h"

enum { ROUNDS = 16, BLOCKS = 90, GRID = 24 };
static uint64_t state; /* the same on every rank */

static int below(int n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)((state >> 33) % (unsigned)n);
}

static unsigned char value(int round, int owner, long place) {
    return (unsigned char)(1 + (round * 31 + owner * 7 + place * 13 + (place >> 8)) % 255);
}

/* What one rank sees of the file: a type that says where its bytes are, and the same as a list. */
typedef struct {
    MPI_Datatype type;
    long *places, bytes; /* of each byte of its data, from the view's beginning */
    MPI_Aint extent;
} view;

static void see(view* of, long place, int bytes) {
    of->places = realloc(of->places, (size_t)(of->bytes + bytes) * sizeof *of->places);
    for (int i = 0; i < bytes; ++i) of->places[of->bytes++] = place + i;
}

/* Blocks of random lengths with random gaps, each some rank's or nobody's. */
static void scattered(view* views, int unit) {
    int *lengths = memory((size_t)(size * BLOCKS) * sizeof *lengths),
        *counts = memory((size_t)size * sizeof *counts);
    MPI_Aint* places = memory((size_t)(size * BLOCKS) * sizeof *places);
    long place = 0;
    memset(counts, 0, (size_t)size * sizeof *counts);
    const int longest = below(2) ? 40 : 3000;
    for (int i = 0; i < BLOCKS; ++i) {
        const int owner = below(size + 1), length = (1 + below(longest)) * unit;
        place += below(3) * unit;
        if (owner < size) {
            const int at = owner * BLOCKS + counts[owner]++;
            places[at] = place, lengths[at] = length;
            see(&views[owner], place, length);
        }
        place += length;
    }
    place += below(50) * unit;
    const int how = below(2);
    for (int owner = 0; owner < size; ++owner) {
        MPI_Datatype inner, *bytes = memory(BLOCKS * sizeof *bytes);
        for (int i = 0; i < BLOCKS; ++i) bytes[i] = MPI_BYTE;
        if (how)
            OK(MPI_Type_create_hindexed(counts[owner], lengths + owner * BLOCKS, places + owner * BLOCKS,
                                        MPI_BYTE, &inner));
        else
            OK(MPI_Type_create_struct(counts[owner], lengths + owner * BLOCKS, places + owner * BLOCKS, bytes,
                                      &inner));
        OK(MPI_Type_create_resized(inner, 0, place, &views[owner].type));
        OK(MPI_Type_free(&inner));
        views[owner].extent = place;
        free(bytes);
    }
    free(lengths), free(counts), free(places);
}

/* Every size-th group of `group` units. */
static void striped(view* views, int unit) {
    const int group = (1 + below(9)) * unit, strides = 1 + below(60), how = below(3);
    int* places = memory((size_t)strides * sizeof *places);
    MPI_Aint* bytes = memory((size_t)strides * sizeof *bytes);
    for (int owner = 0; owner < size; ++owner) {
        MPI_Datatype block, inner;
        for (int i = 0; i < strides; ++i) {
            see(&views[owner], ((long)i * size + owner) * group, group);
            places[i] = i * size + owner, bytes[i] = (MPI_Aint)places[i] * group;
        }
        OK(MPI_Type_contiguous(group, MPI_BYTE, &block));
        if (how == 0) OK(MPI_Type_create_indexed_block(strides, 1, places, block, &inner));
        if (how == 1) OK(MPI_Type_create_hindexed_block(strides, 1, bytes, block, &inner));
        if (how == 2) {
            MPI_Datatype vector;
            int one = 1;
            MPI_Aint first = (MPI_Aint)owner * group;
            OK(MPI_Type_vector(strides, 1, size, block, &vector));
            OK(MPI_Type_create_hindexed(1, &one, &first, vector, &inner));
            OK(MPI_Type_free(&vector));
        }
        views[owner].extent = (MPI_Aint)strides * size * group;
        OK(MPI_Type_create_resized(inner, 0, views[owner].extent, &views[owner].type));
        OK(MPI_Type_free(&inner));
        OK(MPI_Type_free(&block));
    }
    free(places), free(bytes);
}

/* A part of a matrix each: columns, or what MPI_Type_create_darray deals out. */
static void matrix(view* views, int unit) {
    const int order = below(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN, deals = below(2), block = 1 + below(4);
    int sizes[2] = {GRID, GRID * size}, dealt[2] = {MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_CYCLIC};
    int blocks[2] = {MPI_DISTRIBUTE_DFLT_DARG, block}, grid[2] = {1, size};
    for (int owner = 0; owner < size; ++owner) {
        int parts[2] = {GRID, GRID}, starts[2] = {0, GRID * owner};
        MPI_Datatype element;
        OK(MPI_Type_contiguous(unit, MPI_BYTE, &element));
        if (deals)
            OK(MPI_Type_create_darray(size, owner, 2, sizes, dealt, blocks, grid, order, element,
                                      &views[owner].type));
        else
            OK(MPI_Type_create_subarray(2, sizes, parts, starts, order, element, &views[owner].type));
        OK(MPI_Type_free(&element));
        views[owner].extent = (MPI_Aint)GRID * GRID * size * unit;
        /* In the order of the file: in C's order the second index moves first, in Fortran's the first one. */
        const int outer = order == MPI_ORDER_C ? sizes[0] : sizes[1],
                  within = order == MPI_ORDER_C ? sizes[1] : sizes[0];
        for (int i = 0; i < outer; ++i)
            for (int j = 0; j < within; ++j) {
                const int column = order == MPI_ORDER_C ? j : i;
                if ((deals ? column / block % size : column / GRID) == owner)
                    see(&views[owner], ((long)i * within + j) * unit, unit);
            }
    }
}

static view* make_views(int unit) {
    view* views = memory((size_t)size * sizeof *views);
    memset(views, 0, (size_t)size * sizeof *views);
    const int kind = below(3);
    if (kind == 0) scattered(views, unit);
    if (kind == 1) striped(views, unit);
    if (kind == 2) matrix(views, unit);
    for (int i = 0; i < size; ++i) OK(MPI_Type_commit(&views[i].type));
    return views;
}

static void free_views(view* views) {
    for (int i = 0; i < size; ++i) {
        OK(MPI_Type_free(&views[i].type));
        free(views[i].places);
    }
    free(views);
}

/* Where byte i of the data of a view is in the file. */
static long place_of(const view* of, long disp, long i) {
    return disp + i / of->bytes * (long)of->extent + of->places[i % of->bytes];
}

/* Memory in which the data has gaps: each element of `unit` bytes is followed by one that is not its. */
static MPI_Datatype spread(int unit, long units) {
    MPI_Datatype type;
    OK(MPI_Type_vector((int)units, unit, 2 * unit, MPI_BYTE, &type));
    OK(MPI_Type_commit(&type));
    return type;
}

typedef struct {
    int how, gaps, unit;
    long from, bytes; /* of the view's data */
} portion;

static void access_file(MPI_File file, const portion* what, unsigned char* data, int writes) {
    const long units = what->bytes / what->unit, offset = what->from / what->unit;
    MPI_Datatype type = what->gaps && units > 0 ? spread(what->unit, units) : MPI_BYTE;
    const int count = type == MPI_BYTE ? (int)what->bytes : 1;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Status status;
    int got = -1;
    MPI_Count bytes;
    if (what->how < 4) OK(MPI_File_seek(file, offset, MPI_SEEK_SET));
#define EITHER(name, ...)                          \
    do {                                           \
        if (writes)                                \
            OK(MPI_File_write##name(__VA_ARGS__)); \
        else                                       \
            OK(MPI_File_read##name(__VA_ARGS__));  \
    } while (0)
#define STARTED(name, ...)                          \
    do {                                            \
        if (writes)                                 \
            OK(MPI_File_iwrite##name(__VA_ARGS__)); \
        else                                        \
            OK(MPI_File_iread##name(__VA_ARGS__));  \
    } while (0)
    switch (what->how) {
        case 0:
            EITHER(_all, file, data, count, type, &status);
            break;
        case 1:
            EITHER(, file, data, count, type, &status);
            break;
        case 2:
            EITHER(_all_begin, file, data, count, type);
            EITHER(_all_end, file, data, &status);
            break;
        case 3:
            STARTED(_all, file, data, count, type, &request);
            break;
        case 4:
            EITHER(_at_all, file, offset, data, count, type, &status);
            break;
        case 5:
            EITHER(_at, file, offset, data, count, type, &status);
            break;
        case 6:
            EITHER(_at_all_begin, file, offset, data, count, type);
            EITHER(_at_all_end, file, data, &status);
            break;
        default:
            STARTED(_at, file, offset, data, count, type, &request);
            break;
    }
    if (request != MPI_REQUEST_NULL) OK(MPI_Wait(&request, &status));
    OK(MPI_Get_count(&status, MPI_BYTE, &got));
    OK(MPI_Get_elements_x(&status, MPI_BYTE, &bytes));
    CHECK(got == what->bytes && bytes == what->bytes, "%s way %d: %d of %ld bytes", writes ? "write" : "read",
          what->how, got, what->bytes);
    if (what->how < 4) {
        MPI_Offset place;
        OK(MPI_File_get_position(file, &place));
        CHECK(place == offset + units, "the pointer is at %lld instead of %ld", (long long)place,
              offset + units);
    }
    if (type != MPI_BYTE) OK(MPI_Type_free(&type));
}

/* Which bytes of the program's memory hold byte i of the data. */
static long in_memory(const portion* what, long i) {
    return what->gaps ? i / what->unit * 2 * what->unit + i % what->unit : i;
}

enum { BEFORE = 0xab };

static long end_of(const view* views, const portion* whats, long disp) {
    long end = 0;
    for (int owner = 0; owner < size; ++owner)
        for (long i = 0; i < whats[owner].bytes; ++i) {
            const long place = place_of(&views[owner], disp, whats[owner].from + i);
            end = place >= end ? place + 1 : end;
        }
    return end;
}

/* Rank 0: the file holds something before anybody writes, also where nobody will. (Of places that nobody ever
 * wrote MPI does not say what they hold.) */
static void write_before(const char* path, long end) {
    FILE* out = fopen(path, "wb");
    CHECK(out, "%s cannot be written", path);
    for (long i = 0; i < end; ++i) fputc(BEFORE, out);
    CHECK(fclose(out) == 0, "%s cannot be written", path);
}

/* Rank 0: the file holds what its owners wrote, and what it held before elsewhere. */
static void compare(const char* path, int round, const view* views, const portion* whats, long disp) {
    const long end = end_of(views, whats, disp);
    unsigned char *model = memory((size_t)end + 1), *file = memory((size_t)end + 1);
    memset(model, BEFORE, (size_t)end + 1);
    for (int owner = 0; owner < size; ++owner)
        for (long i = 0; i < whats[owner].bytes; ++i)
            model[place_of(&views[owner], disp, whats[owner].from + i)] =
                value(round, owner, whats[owner].from + i);
    FILE* in = fopen(path, "rb");
    CHECK(in, "%s cannot be opened", path);
    const long length = (long)fread(file, 1, (size_t)end + 1, in);
    fclose(in);
    CHECK(length == end, "round %d: the file has %ld bytes instead of %ld", round, length, end);
    for (long i = 0; i < end; ++i)
        CHECK(file[i] == model[i], "round %d, way %d: byte %ld of %ld is %d instead of %d", round,
              whats[0].how, i, end, file[i], model[i]);
    free(model), free(file);
}

static MPI_Info hints(void) {
    static const char* const wishes[] = {"automatic", "enable", "disable"};
    MPI_Info info;
    OK(MPI_Info_create(&info));
    const char* wish = wishes[below(3)];
    OK(MPI_Info_set(info, "romio_cb_write", wish));
    OK(MPI_Info_set(info, "romio_cb_read", wish));
    OK(MPI_Info_set(info, "cb_buffer_size", below(2) ? "65536" : "4194304"));
    return info;
}

static void play(const char* path, int round) {
    const int unit = 1 + below(2) * 3;
    view* views = make_views(unit);
    const long disp = below(3) * 100;
    portion* whats = memory((size_t)size * sizeof *whats);
    /* Accesses of all ranks together are of one kind; of those of one rank alone each has its own. */
    const int together = below(8), repeats = 1 + below(3), nobody = below(4) == 0 ? below(size) : -1;
    for (int i = 0; i < size; ++i) {
        const long units = views[i].bytes / unit * repeats;
        whats[i] = (portion){.how = together, .gaps = below(2), .unit = unit};
        whats[i].from = units > 3 ? (units / 4 > 0 ? below((int)(units / 4)) : 0) * unit : 0;
        whats[i].bytes = i == nobody ? 0 : units * unit - whats[i].from;
    }
    MPI_Info info = hints();
    MPI_File file;
    MPI_Datatype etype;
    OK(MPI_Type_contiguous(unit, MPI_BYTE, &etype));
    OK(MPI_Type_commit(&etype));
    if (rank == 0) write_before(path, end_of(views, whats, disp));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, info, &file));
    const portion* mine = &whats[rank];
    unsigned char* data = memory((size_t)(2 * mine->bytes + 2 * unit));
    memset(data, 0xee, (size_t)(2 * mine->bytes + 2 * unit));
    for (long i = 0; i < mine->bytes; ++i) data[in_memory(mine, i)] = value(round, rank, mine->from + i);
    OK(MPI_File_set_view(file, disp, etype, views[rank].type, "native", info));
    access_file(file, mine, data, 1);
    OK(MPI_File_sync(file));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) compare(path, round, views, whats, disp);
    OK(MPI_File_sync(file));
    free(data);
    const int other = (rank + 1 + below(size)) % size;
    portion theirs = whats[other];
    theirs.how = below(8), theirs.gaps = below(2);
    const size_t room = (size_t)(2 * theirs.bytes + 2 * unit);
    data = memory(room);
    memset(data, 0xee, room);
    OK(MPI_File_set_view(file, disp, etype, views[other].type, "native", info));
    access_file(file, &theirs, data, 0);
    for (long i = 0; i < theirs.bytes; ++i) {
        const unsigned char expected = value(round, other, theirs.from + i);
        CHECK(data[in_memory(&theirs, i)] == expected,
              "round %d: read %d instead of %d at byte %ld of rank %d", round, data[in_memory(&theirs, i)],
              expected, i, other);
        if (theirs.gaps)
            CHECK(data[in_memory(&theirs, i) + unit] == 0xee, "round %d: a gap in memory was written", round);
    }
    OK(MPI_File_close(&file));
    OK(MPI_Type_free(&etype));
    OK(MPI_Info_free(&info));
    free(data), free(whats);
    free_views(views);
}

void rule_files_random(void) {
    char path[4096];
    const char* directory = getenv("TMPDIR");
    if (rank == 0)
        snprintf(path, sizeof path, "%s/mpisec-random-%ld", directory ? directory : "/tmp", (long)getpid());
    OK(MPI_Bcast(path, sizeof path, MPI_CHAR, 0, MPI_COMM_WORLD));
    const char* wanted = getenv("MPISEC_LAB_ROUNDS");
    const int rounds = wanted ? atoi(wanted) : ROUNDS;
    for (int round = 0; round < rounds; ++round) {
        state = 20261124u + (unsigned)(round * 7919 + size);
        play(path, round);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) unlink(path);
}
