/* M8: every constructor of datatypes, the large-count ones too, inside each other at random: what a message, a put, a get and
 * a view of a file move is what the library itself packs. All ranks draw the same types. */
#include <sys/mman.h>
#include <unistd.h>

#include "harness.h"
#include "rules.h"

enum { CASES = 60, MOST_ROOM = 1 << 18, MOST_BLOCKS = 5 };
enum kind {
    DUP,
    CONTIGUOUS,
    VECTOR,
    HVECTOR,
    INDEXED,
    HINDEXED,
    INDEXED_BLOCK,
    HINDEXED_BLOCK,
    STRUCT,
    SUBARRAY,
    DARRAY,
    RESIZED,
    KINDS
};

static uint64_t state; /* of the generator that is the same on all ranks */
static int draw(int below) {
    state += 0x9e3779b97f4a7c15u;
    uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (int)((z ^ (z >> 31)) % (unsigned)below);
}

struct made {
    MPI_Datatype type, base;
    int viewable; /* ascends in the order of its type map, as a view of a file must; nothing that libraries trip over */
};

static MPI_Aint span_of(MPI_Datatype type) {
    MPI_Aint lower, extent;
    OK(MPI_Type_get_extent(type, &lower, &extent));
    return extent;
}

/* MAKE(name, arguments…): by the large-count constructor where `large`. */
#ifdef HAVE_COUNT_VARIANTS
#define MAKE(name, small, big)      \
    do {                            \
        if (large)                  \
            OK(MPI_##name##_c big); \
        else                        \
            OK(MPI_##name small);   \
    } while (0)
#else
#define MAKE(name, small, big) OK(MPI_##name small)
#endif

/* Blocks of `inner`, one behind the other or, now and then, the last one first. */
static void make_blocks(enum kind kind, int large, MPI_Datatype inner, struct made* made) {
    const int blocks = 1 + draw(MOST_BLOCKS), equal = 1 + draw(3), backwards = draw(3) == 0;
    const MPI_Aint extent = span_of(inner);
    int lengths[MOST_BLOCKS], places[MOST_BLOCKS];
    MPI_Aint addresses[MOST_BLOCKS];
    MPI_Count big_lengths[MOST_BLOCKS], big_places[MOST_BLOCKS], big_addresses[MOST_BLOCKS];
    MPI_Datatype types[MOST_BLOCKS];
    made->viewable = made->viewable && !backwards;
    for (int i = 0, next = 0; i < blocks; ++i) {
        const int at = backwards ? blocks - 1 - i : i;
        const int each = kind == INDEXED_BLOCK || kind == HINDEXED_BLOCK ? equal : i == 0 ? 2 : draw(4);
        big_lengths[at] = lengths[at] = each;
        big_places[at] = places[at] = next;
        big_addresses[at] = addresses[at] =
            next * extent + (kind == INDEXED || kind == INDEXED_BLOCK ? 0 : 8 * i);
        types[at] = inner;
        if (each == 0) made->viewable = 0; /* Intel MPI takes it for a step back */
        next += each + draw(3);
    }
    (void)large, (void)big_lengths, (void)big_places, (void)big_addresses;
    MPI_Datatype* const type = &made->type;
    if (kind == INDEXED)
        MAKE(Type_indexed, (blocks, lengths, places, inner, type),
             (blocks, big_lengths, big_places, inner, type));
    else if (kind == HINDEXED)
        MAKE(Type_create_hindexed, (blocks, lengths, addresses, inner, type),
             (blocks, big_lengths, big_addresses, inner, type));
    else if (kind == INDEXED_BLOCK)
        MAKE(Type_create_indexed_block, (blocks, equal, places, inner, type),
             (blocks, equal, big_places, inner, type));
    else if (kind == HINDEXED_BLOCK)
        MAKE(Type_create_hindexed_block, (blocks, equal, addresses, inner, type),
             (blocks, equal, big_addresses, inner, type));
    else
        MAKE(Type_create_struct, (blocks, lengths, addresses, types, type),
             (blocks, big_lengths, big_addresses, types, type));
}

static void make_array(enum kind kind, int large, MPI_Datatype inner, MPI_Datatype* type) {
    static const int ways[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_NONE};
    const int dimensions = 1 + draw(3), order = draw(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
    int sizes_of[3], parts[3], firsts[3], dealt[3], blocks[3], processes[3], all = 1;
    MPI_Count big_sizes[3], big_parts[3], big_firsts[3];
    for (int i = 0; i < dimensions; ++i) {
        big_sizes[i] = sizes_of[i] = 2 + draw(5);
        big_parts[i] = parts[i] = 1 + draw(sizes_of[i]);
        big_firsts[i] = firsts[i] = draw(sizes_of[i] - parts[i] + 1);
        dealt[i] = ways[draw(3)];
        /* Open MPI refuses to make the type of a process that has nothing of the array. */
        processes[i] = dealt[i] == MPI_DISTRIBUTE_NONE ? 1 : 1 + draw(2);
        blocks[i] = draw(2) ? MPI_DISTRIBUTE_DFLT_DARG : (sizes_of[i] + processes[i] - 1) / processes[i];
        all *= processes[i];
    }
    (void)large, (void)big_sizes, (void)big_parts, (void)big_firsts;
    if (kind == SUBARRAY) {
        MAKE(Type_create_subarray, (dimensions, sizes_of, parts, firsts, order, inner, type),
             (dimensions, big_sizes, big_parts, big_firsts, order, inner, type));
    } else {
        const int who = draw(all);
        MAKE(Type_create_darray,
             (all, who, dimensions, sizes_of, dealt, blocks, processes, order, inner, type),
             (all, who, dimensions, big_sizes, dealt, blocks, processes, order, inner, type));
    }
}

static struct made make(int depth) {
    static const MPI_Datatype bases[] = {MPI_INT, MPI_DOUBLE, MPI_CHAR, MPI_SHORT_INT};
    struct made made = {MPI_DATATYPE_NULL, MPI_DATATYPE_NULL, 1};
    if (depth == 0) {
        made.base = bases[draw(4)];
        OK(MPI_Type_dup(made.base, &made.type));
        return made;
    }
    const struct made inner = make(depth - 1);
    const enum kind kind = (enum kind)draw(KINDS);
    const int large = draw(2), count = 1 + draw(4), length = 1 + draw(3), stride = length + draw(3);
    const MPI_Aint extent = span_of(inner.type);
    made = inner;
    if (large) made.viewable = 0; /* plain MPICH 4 cannot */
    switch (kind) {
        case DUP:
            OK(MPI_Type_dup(inner.type, &made.type));
            break;
        case CONTIGUOUS:
            MAKE(Type_contiguous, (count, inner.type, &made.type), (count, inner.type, &made.type));
            break;
        case VECTOR:
            MAKE(Type_vector, (count, length, stride, inner.type, &made.type),
                 (count, length, stride, inner.type, &made.type));
            break;
        case HVECTOR:
            MAKE(Type_create_hvector, (count, length, stride * extent + 8, inner.type, &made.type),
                 (count, length, stride * extent + 8, inner.type, &made.type));
            break;
        case SUBARRAY:
        case DARRAY:
            make_array(kind, large, inner.type, &made.type);
            break;
        case RESIZED:
            MAKE(Type_create_resized, (inner.type, 0, extent + 16, &made.type),
                 (inner.type, 0, extent + 16, &made.type));
            break;
        default:
            make_blocks(kind, large, inner.type, &made);
    }
    MPI_Datatype gone = inner.type;
    OK(MPI_Type_free(&gone));
    return made;
}

/* What `owner` has in memory from which elements are taken, and what is in memory of zeros to which they were given. */
static void images(int owner, int number, MPI_Datatype type, int count, size_t room, void* from, void* to) {
    int bytes, position = 0;
    OK(MPI_Pack_size(count, type, MPI_COMM_SELF, &bytes));
    void* packed = memory((size_t)bytes + 1);
    fill(from, room, seed_of(owner, owner, number, (int)room));
    memset(to, 0, room);
    OK(MPI_Pack(from, count, type, packed, bytes, &position, MPI_COMM_SELF));
    bytes = position, position = 0;
    OK(MPI_Unpack(packed, bytes, &position, to, count, type, MPI_COMM_SELF));
    free(packed);
}

static void check_image(const void* got, const void* expected, size_t room, int number, const char* how) {
    const unsigned char *a = got, *b = expected;
    for (size_t i = 0; i < room; ++i)
        CHECK(a[i] == b[i], "%s of type %d: byte %zu of %zu is %d, not %d", how, number, i, room, a[i], b[i]);
}

static void in_a_window(const void* from, void* got, const void* expected, size_t room, int count,
                        MPI_Datatype type, int number) {
    const int right = (rank + 1) % size;
    MPI_Win window;
    memset(got, 0, room);
    OK(MPI_Win_create(got, (MPI_Aint)room, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window));
    OK(MPI_Win_fence(0, window));
    OK(MPI_Put(from, count, type, right, 0, count, type, window));
    OK(MPI_Win_fence(0, window));
    check_image(got, expected, room, number, "a put");
    void *back = memory(room), *own = memory(room), *unused = memory(room);
    memset(back, 0, room);
    OK(MPI_Get(back, count, type, right, 0, count, type, window));
    OK(MPI_Win_fence(0, window));
    images(rank, number, type, count, room, unused, own);
    check_image(back, own, room, number, "a get");
    OK(MPI_Win_free(&window));
    free(back), free(own), free(unused);
}

static void in_a_file(const void* from, void* got, size_t room, int count, const struct made* made,
                      int number) {
    const char* directory = getenv("TMPDIR");
    char path[4096];
    MPI_File file;
    if (rank == 0)
        snprintf(path, sizeof path, "%s/mpisec-constructors-%ld-%d", directory ? directory : "/tmp",
                 (long)getpid(), number);
    OK(MPI_Bcast(path, sizeof path, MPI_CHAR, 0, MPI_COMM_WORLD));
    OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                     MPI_INFO_NULL, &file));
    /* Plain MPICH writes what its buffer held between the data of a file that ends before. */
    OK(MPI_File_set_size(file, (MPI_Offset)size * MOST_ROOM));
    const MPI_Offset mine = (MPI_Offset)rank * MOST_ROOM;
    OK(MPI_File_set_view(file, mine, made->base, made->type, "native", MPI_INFO_NULL));
    OK(MPI_File_write_at_all(file, 0, from, count, made->type, MPI_STATUS_IGNORE));
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    memset(got, 0, room);
    OK(MPI_File_read_at(file, mine, got, (int)room, MPI_BYTE, MPI_STATUS_IGNORE));
    void *own = memory(room), *unused = memory(room);
    images(rank, number, made->type, count, room, unused, own);
    check_image(got, own, room, number, "a file's view");
    OK(MPI_File_close(&file));
    free(own), free(unused);
}

static void try(struct made* made, int number) {
    const int count = 1 + draw(3), right = (rank + 1) % size, left = (rank + size - 1) % size;
    MPI_Aint lower, span, true_lower, true_span;
    int bytes;
    OK(MPI_Type_commit(&made->type));
    OK(MPI_Type_get_extent(made->type, &lower, &span));
    OK(MPI_Type_get_true_extent(made->type, &true_lower, &true_span));
    OK(MPI_Type_size(made->type, &bytes));
    const size_t room = (size_t)(span * (count - 1) + true_lower + true_span) + 8;
    if (bytes == 0 || room > MOST_ROOM) return;
    void *from = memory(room), *got = memory(room), *expected = memory(room);
    images(left, number, made->type, count, room, from, expected);
    fill(from, room, seed_of(rank, rank, number, (int)room));
    memset(got, 0, room);
    OK(MPI_Sendrecv(from, count, made->type, right, number, got, count, made->type, left, number,
                    MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    check_image(got, expected, room, number, "a message");
    in_a_window(from, got, expected, room, count, made->type, number);
    if (made->viewable && made->base != MPI_SHORT_INT) in_a_file(from, got, room, count, made, number);
    free(from), free(got), free(expected);
}

/* Types are described by how they are made, so what lies between their data may be longer than any memory. */
static void far_apart(void) {
    const MPI_Aint apart = (MPI_Aint)3 << 30;
    const size_t room = (size_t)apart + 4096;
    char* all = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(all != MAP_FAILED, "3 GiB of addresses");
    MPI_Datatype type;
    MPI_Win window;
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;
    int out[6], back[6] = {0};
    for (int i = 0; i < 6; ++i) out[i] = rank * 10 + i;
    OK(MPI_Type_create_hvector(2, 3, apart, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Win_create(all, (MPI_Aint)room, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window));
    OK(MPI_Win_fence(0, window));
    OK(MPI_Put(out, 6, MPI_INT, right, 64, 1, type, window));
    OK(MPI_Win_fence(0, window));
    for (int i = 0; i < 6; ++i) {
        const int got = *(int*)(all + 64 + i / 3 * apart + i % 3 * 4);
        CHECK(got == left * 10 + i, "far apart: %d at %d", got, i);
    }
    OK(MPI_Get(back, 6, MPI_INT, right, 64, 1, type, window));
    OK(MPI_Win_fence(0, window));
    CHECK(memcmp(back, out, sizeof out) == 0, "far apart: a get");
    OK(MPI_Win_free(&window));
    OK(MPI_Type_free(&type));
    munmap(all, room);
}

void rule_constructors(void) {
    state = 7;
    for (int number = 0; number < CASES; ++number) {
        struct made made = make(1 + draw(3));
        try(&made, number);
        OK(MPI_Type_free(&made.type));
    }
    far_apart();
}
