/* One-sided communication between nodes: fences, Put, Get and Accumulate of predefined and derived types, to
 * windows of all three kinds. Sealed, the process whose memory it is does the operations. */
#include "harness.h"
#include "rules.h"

enum { CELLS = 4096, LARGE = 1 << 20 };

static int stamp(int owner, int index) {
    return owner * 100003 + index;
}

/* Everyone puts its stamp into its own slice of everyone's window, and gets everybody's slices back. */
static void slices(MPI_Win window, int* cells) {
    const int slice = CELLS / size;
    int *mine = memory(CELLS * sizeof *mine), *theirs = memory(CELLS * sizeof *theirs);
    for (int i = 0; i < CELLS; ++i) mine[i] = stamp(rank, i), cells[i] = -1;
    OK(MPI_Win_fence(0, window));
    for (int to = 0; to < size; ++to)
        OK(MPI_Put(mine, slice, MPI_INT, to, rank * slice, slice, MPI_INT, window));
    OK(MPI_Win_fence(0, window));
    for (int i = 0; i < slice * size; ++i)
        CHECK(cells[i] == stamp(i / slice, i % slice), "cell %d holds %d", i, cells[i]);
    OK(MPI_Win_fence(0, window));
    for (int from = 0; from < size; ++from)
        OK(MPI_Get(theirs + from * slice, slice, MPI_INT, from, rank * slice, slice, MPI_INT, window));
    OK(MPI_Win_fence(0, window));
    for (int i = 0; i < slice * size; ++i)
        CHECK(theirs[i] == stamp(rank, i % slice), "got %d for %d", theirs[i], i);
    for (int i = 0; i < CELLS; ++i) cells[i] = 1;
    OK(MPI_Win_fence(0, window));
    for (int to = 0; to < size; ++to)
        for (int turn = 0; turn < 3; ++turn)
            OK(MPI_Accumulate(mine, CELLS, MPI_INT, to, 0, CELLS, MPI_INT, MPI_SUM, window));
    OK(MPI_Win_fence(0, window));
    for (int i = 0; i < CELLS; ++i) {
        int sum = 1;
        for (int from = 0; from < size; ++from) sum += 3 * stamp(from, i);
        CHECK(cells[i] == sum, "accumulated %d instead of %d in cell %d", cells[i], sum, i);
    }
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, window));
    free(mine);
    free(theirs);
}

static MPI_Datatype every_third(void) {
    MPI_Datatype type;
    OK(MPI_Type_vector(CELLS / 3, 1, 3, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    return type;
}

static MPI_Datatype backwards(void) {
    MPI_Datatype type;
    int* places = memory(8 * sizeof *places);
    for (int i = 0; i < 8; ++i) places[i] = 2 * (7 - i);
    OK(MPI_Type_create_indexed_block(8, 1, places, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    free(places);
    return type;
}

/* Gaps at the origin, at the target, at both, and elements that do not come in the order of memory. */
static void types(MPI_Win window, int* cells) {
    const int right = (rank + 1) % size, left = (rank + size - 1) % size, third = CELLS / 3;
    MPI_Datatype gaps = every_third(), reversed = backwards();
    int *mine = memory(CELLS * sizeof *mine), *got = memory(CELLS * sizeof *got);
    for (int i = 0; i < CELLS; ++i) mine[i] = stamp(rank, i), cells[i] = got[i] = -1;
    OK(MPI_Win_fence(0, window));
    OK(MPI_Put(mine, third, MPI_INT, right, 1, 1, gaps, window));
    OK(MPI_Win_fence(0, window));
    for (int i = 0; i < 3 * third; ++i)
        CHECK(cells[i] == (i % 3 == 1 ? stamp(left, i / 3) : -1), "cell %d holds %d", i, cells[i]);
    OK(MPI_Win_fence(0, window));
    OK(MPI_Get(got, 1, gaps, right, 1, 1, gaps, window));
    OK(MPI_Win_fence(0, window));
    for (int i = 0; i < 3 * third; ++i)
        CHECK(got[i] == (i % 3 == 0 ? stamp(rank, i / 3) : -1), "got %d for %d", got[i], i);
    for (int i = 0; i < CELLS; ++i) cells[i] = 7;
    OK(MPI_Win_fence(0, window));
    OK(MPI_Accumulate(mine, 16, MPI_INT, right, 100, 2, reversed, MPI_SUM, window));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, window));
    int extent = 15;
    for (int i = 0; i < 16; ++i) {
        int place = 100 + i / 8 * extent + 2 * (7 - i % 8), expected = 7 + stamp(left, i);
        /* the two elements overlap nowhere: the first has even places, the second odd ones */
        CHECK(cells[place] == expected, "cell %d holds %d instead of %d", place, cells[place], expected);
    }
    OK(MPI_Type_free(&gaps));
    OK(MPI_Type_free(&reversed));
    free(mine);
    free(got);
}

/* What a rank's window holds arrives in elements with holes, of which nothing is sent: these are of MPI_BYTE
 * and of MPI_INT, which MPI_NO_OP fetches. */
static void fetched_with_holes(MPI_Win window, int of, MPI_Datatype holes, unsigned char* got) {
    unsigned char* expected = memory(LARGE);
    MPI_Datatype integers;
    OK(MPI_Type_vector(LARGE / 256, 32, 64, MPI_INT, &integers));
    OK(MPI_Type_commit(&integers));
    fill(expected, LARGE, 1 + (unsigned)((of + size - 1) % size));
    for (int turn = 0; turn < 3; ++turn) {
        memset(got, 0, LARGE);
        OK(MPI_Win_fence(0, window));
        if (turn == 0) OK(MPI_Get(got, 1, holes, of, 0, 1, holes, window));
        if (turn == 1) OK(MPI_Get(got, 1, holes, of, 0, LARGE / 2, MPI_BYTE, window));
        if (turn == 2)
            OK(MPI_Get_accumulate(got, 1, integers, got, 1, integers, of, 0, 1, integers, MPI_NO_OP, window));
        OK(MPI_Win_fence(0, window));
        for (int i = 0; i < LARGE; ++i) {
            const int place = turn == 1 ? i / 256 * 128 + i % 256 : i;
            CHECK(got[i] == (i % 256 < 128 ? expected[place] : 0), "byte %d of rank %d's is %d", i, of,
                  got[i]);
        }
    }
    OK(MPI_Type_free(&integers));
    free(expected);
}

/* Rank 1 fetches memory of rank 0, of which others update the last cell meanwhile: what that has is undefined, all else is not. */
static void beside_updates(void) {
    enum { TURNS = 40 };
    unsigned char *cells = memory(LARGE), *got = memory(LARGE);
    MPI_Win window;
    fill(cells, LARGE, 1);
    memset(cells + LARGE - 8, 0, 8);
    OK(MPI_Win_create(cells, LARGE, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window));
    OK(MPI_Win_lock_all(0, window));
    const long long one = 1;
    long long sum = 0;
    for (int turn = 0; turn < TURNS; ++turn) {
        if (rank == 1) OK(MPI_Get(got, LARGE, MPI_BYTE, 0, 0, LARGE, MPI_BYTE, window));
        for (int i = 0; rank > 1 && i < 20; ++i) {
            OK(MPI_Accumulate(&one, 1, MPI_LONG_LONG, 0, LARGE - 8, 1, MPI_LONG_LONG, MPI_SUM, window));
            OK(MPI_Win_flush(0, window));
        }
        OK(MPI_Win_flush_all(window));
    }
    if (rank == 1) {
        memset(cells, 0, LARGE);
        fill(cells, LARGE, 1);
        CHECK(memcmp(got, cells, LARGE - 8) == 0, "what others do not update has changed");
    }
    OK(MPI_Win_unlock_all(window));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    memcpy(&sum, cells + LARGE - 8, 8);
    CHECK(rank != 0 || size < 2 || sum == 20LL * TURNS * (size - 2), "the sum is %lld", sum);
    OK(MPI_Win_free(&window));
    free(cells);
    free(got);
}

/* Data of several messages: long ones, and types whose description is longer than any request. */
static void large(void) {
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;
    unsigned char *cells, *mine = memory(LARGE), *got = memory(LARGE);
    MPI_Win window;
    MPI_Datatype holes;
    OK(MPI_Win_allocate(LARGE, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &cells, &window));
    fill(mine, LARGE, 1 + (unsigned)rank);
    memset(cells, 0, LARGE);
    OK(MPI_Win_fence(0, window));
    OK(MPI_Put(mine, LARGE, MPI_BYTE, right, 0, LARGE, MPI_BYTE, window));
    OK(MPI_Win_fence(0, window));
    CHECK_FILLED(cells, LARGE, 1 + (unsigned)left);
    OK(MPI_Win_fence(0, window));
    OK(MPI_Get(got, LARGE, MPI_BYTE, right, 0, LARGE, MPI_BYTE, window));
    OK(MPI_Win_fence(0, window));
    CHECK_FILLED(got, LARGE, 1 + (unsigned)rank);
    OK(MPI_Type_vector(LARGE / 256, 128, 256, MPI_BYTE, &holes));
    OK(MPI_Type_commit(&holes));
    for (int of = 0; of < size; ++of) fetched_with_holes(window, of, holes, got);
    OK(MPI_Win_fence(0, window));
    memset(cells, 0, LARGE);
    OK(MPI_Win_fence(0, window));
    OK(MPI_Put(mine, 1, holes, right, 0, 1, holes, window));
    OK(MPI_Win_fence(0, window));
    fill(got, LARGE, 1 + (unsigned)left);
    for (int i = 0; i < LARGE; ++i)
        CHECK(cells[i] == (i % 256 < 128 ? got[i] : 0), "byte %d of a put with holes is %d", i, cells[i]);
    OK(MPI_Win_fence(0, window));
    OK(MPI_Accumulate(mine, LARGE / 4, MPI_INT, right, 0, LARGE / 4, MPI_INT, MPI_REPLACE, window));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, window));
    CHECK_FILLED(cells, LARGE, 1 + (unsigned)left);
    OK(MPI_Type_free(&holes));
    OK(MPI_Win_free(&window));
    free(mine);
    free(got);
}

/* Around the lengths up to which data travels with its request (80 bytes of which are header and run): one put alone, and several
 * behind each other. */
static void lengths(void) {
    enum { MOST = 100000, PUTS = 3 };
    static const int lengths_of[] = {32687, 32688, 32689, 65536, 98223, 98224, 98225, MOST};
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;
    unsigned char *cells, *mine = memory(PUTS * MOST);
    MPI_Win window;
    OK(MPI_Win_allocate(PUTS * MOST, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &cells, &window));
    for (unsigned i = 0; i < sizeof lengths_of / sizeof *lengths_of; ++i)
        for (int puts = 1; puts <= PUTS; puts += 2) {
            const int n = lengths_of[i];
            fill(mine, (size_t)puts * (size_t)n, i + (unsigned)rank);
            memset(cells, 0, PUTS * MOST);
            OK(MPI_Win_fence(0, window));
            for (int put = 0; put < puts; ++put)
                OK(MPI_Put(mine + put * n, n, MPI_BYTE, right, put * n, n, MPI_BYTE, window));
            OK(MPI_Win_fence(0, window));
            CHECK_FILLED(cells, (size_t)puts * (size_t)n, i + (unsigned)left);
        }
    OK(MPI_Win_free(&window));
    free(mine);
}

static void attached(void) {
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;
    int *cells = memory(CELLS * sizeof *cells), mine = stamp(rank, 5);
    MPI_Win window;
    MPI_Aint here, there;
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window));
    OK(MPI_Win_attach(window, cells, CELLS * sizeof *cells));
    OK(MPI_Get_address(cells, &here));
    OK(MPI_Sendrecv(&here, 1, MPI_AINT, left, 3, &there, 1, MPI_AINT, right, 3, MPI_COMM_WORLD,
                    MPI_STATUS_IGNORE));
    OK(MPI_Win_fence(0, window));
    OK(MPI_Put(&mine, 1, MPI_INT, right, MPI_Aint_add(there, 12 * sizeof mine), 1, MPI_INT, window));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, window));
    CHECK(cells[12] == stamp(left, 5), "cell 12 holds %d", cells[12]);
    OK(MPI_Win_detach(window, cells));
    OK(MPI_Win_free(&window));
    free(cells);
}

/* Several windows at a time, on a communicator with its ranks in another order and on a part of the world. */
static void other_communicators(void) {
    MPI_Comm reversed, part;
    MPI_Win windows[3];
    int cells[3] = {-1, -1, -1}, here, members;
    OK(MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &reversed));
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &part));
    for (int i = 0; i < 3; ++i) {
        const MPI_Comm comm = i == 1 ? part : reversed;
        OK(MPI_Win_create(&cells[i], sizeof(int), 1, MPI_INFO_NULL, comm, &windows[i]));
        OK(MPI_Win_fence(0, windows[i]));
    }
    for (int i = 0; i < 3; ++i) {
        OK(MPI_Comm_rank(i == 1 ? part : reversed, &here));
        OK(MPI_Comm_size(i == 1 ? part : reversed, &members));
        const int value = 1000 * i + here;
        OK(MPI_Put(&value, 1, MPI_INT, (here + 1) % members, 0, 1, MPI_INT, windows[i]));
        OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, windows[i]));
        const int from = (here + members - 1) % members;
        /* MPICH 4.0.2 plain does nothing to a window of one process here. */
        CHECK(members == 1 || cells[i] == 1000 * i + from, "window %d holds %d of rank %d", i, cells[i],
              from);
    }
    for (int i = 0; i < 3; ++i) OK(MPI_Win_free(&windows[(i + 1) % 3]));
    OK(MPI_Comm_free(&reversed));
    OK(MPI_Comm_free(&part));
}

/* What the program asks of a window is what it made it with. */
static void asked(MPI_Win window, const int* cells) {
    void* base;
    MPI_Aint* bytes;
    int *unit, found, result, members;
    MPI_Group group, all;
    OK(MPI_Win_get_attr(window, MPI_WIN_BASE, &base, &found));
    CHECK(found && base == cells, "the base is %p instead of %p", base, (const void*)cells);
    OK(MPI_Win_get_attr(window, MPI_WIN_SIZE, &bytes, &found));
    CHECK(found && *bytes == CELLS * (MPI_Aint)sizeof(int), "the size is %ld", (long)*bytes);
    OK(MPI_Win_get_attr(window, MPI_WIN_DISP_UNIT, &unit, &found));
    CHECK(found && *unit == sizeof(int), "the unit is %d", *unit);
    OK(MPI_Win_get_group(window, &group));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    OK(MPI_Group_compare(group, all, &result));
    OK(MPI_Group_size(group, &members));
    CHECK(result == MPI_IDENT, "the group of %d is another", members);
    OK(MPI_Group_free(&group));
    OK(MPI_Group_free(&all));
}

/* An attribute that is deleted with the window finds it as it was, and all its ranks. */
static int asked_at_the_end(MPI_Win window, int key, void* cells, void* counter) {
    (void)key;
    asked(window, cells);
#if defined(OPEN_MPI) /* which crashes there */
    if (!sealed || nodes == 1) return ++*(int*)counter, MPI_SUCCESS;
#endif
    const int right = (rank + 1) % size, left = (rank + size - 1) % size, last_word = 1000 + rank;
    OK(MPI_Win_fence(0, window));
    OK(MPI_Put(&last_word, 1, MPI_INT, right, 0, 1, MPI_INT, window));
    OK(MPI_Win_fence(0, window));
    CHECK(*(int*)cells == 1000 + left, "rank %d put %d as the window was freed", left, *(int*)cells);
    ++*(int*)counter;
    return MPI_SUCCESS;
}

static void free_asked(MPI_Win* window, int* cells) {
    int key, deleted = 0;
    OK(MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, asked_at_the_end, &key, &deleted));
    OK(MPI_Win_set_attr(*window, key, cells));
    OK(MPI_Win_free(window));
    OK(MPI_Win_free_keyval(&key));
    CHECK(deleted == 1, "the attribute was deleted %d times", deleted);
    CHECK(*window == MPI_WIN_NULL, "a freed window is not null");
}

/* What is sent may be shorter than the room for it. (Plain libraries copy as much as there is room for, or refuse.) */
static void fewer_than_room(MPI_Win window, int* cells) {
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;
    int mine[5] = {rank, 10 + rank, 20 + rank, 30 + rank, 40 + rank}, got[5] = {-1, -1, -1, -1, -1};
    MPI_Datatype pairs, triples;
    if (!sealed || nodes == 1) return;
    OK(MPI_Type_vector(2, 1, 2, MPI_INT, &pairs));
    OK(MPI_Type_vector(3, 1, 2, MPI_INT, &triples));
    OK(MPI_Type_commit(&pairs));
    OK(MPI_Type_commit(&triples));
    for (int i = 0; i < 24; ++i) cells[i] = -1;
    OK(MPI_Win_fence(0, window));
    OK(MPI_Put(mine, 3, MPI_INT, right, 0, 5, MPI_INT, window));
    OK(MPI_Put(mine, 5, MPI_INT, right, 6, 4, pairs, window)); /* two and a half */
    OK(MPI_Accumulate(mine, 2, MPI_INT, right, 18, 1, triples, MPI_REPLACE, window));
    OK(MPI_Put(mine, 0, MPI_INT, right, 0, 5, MPI_INT, window));
    OK(MPI_Win_fence(0, window));
    OK(MPI_Get(got, 5, MPI_INT, right, 0, 3, MPI_INT, window));
    OK(MPI_Win_fence(0, window));
    const int want[24] = {left,      10 + left, 20 + left, -1,        -1,        -1, left, -1,
                          10 + left, 20 + left, -1,        30 + left, 40 + left, -1, -1,   -1,
                          -1,        -1,        left,      -1,        10 + left, -1, -1,   -1};
    for (int i = 0; i < 24; ++i)
        CHECK(cells[i] == want[i], "cell %d holds %d instead of %d", i, cells[i], want[i]);
    for (int i = 0; i < 5; ++i)
        CHECK(got[i] == (i < 3 ? 10 * i + rank : -1), "got %d as number %d", got[i], i);
    OK(MPI_Type_free(&pairs));
    OK(MPI_Type_free(&triples));
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED /* whose allocator reports what is too large */
#endif
#endif

#ifndef SANITIZED
/* The error is the communicator's that the window was to be made on; the handlers of others end the job. */
static void too_much(void) {
    MPI_Comm copy;
    MPI_Win none;
    void* memory;
    if (!sealed || nodes == 1) return;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &copy));
    OK(MPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
    const MPI_Aint size_here = rank == 0 ? (MPI_Aint)1 << 62 : 64;
    CHECK(class_of(MPI_Win_allocate(size_here, 1, MPI_INFO_NULL, copy, &memory, &none)) == MPI_ERR_NO_MEM,
          "a window of 2^62 bytes is no error");
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_free(&copy));
}
#endif

/* Of one's own part there is memory to be had. Open MPI and MPI before 4.1 know this of shared windows only. */
static void own_memory(MPI_Win window, const int* cells) {
    MPI_Aint bytes = 0;
    int unit = 0, *base = NULL;
    if (!sealed || nodes == 1) return;
    OK(MPI_Win_shared_query(window, rank, &bytes, &unit, &base));
    CHECK(base == cells && unit == sizeof(int) && bytes == CELLS * (MPI_Aint)sizeof(int), "it is at %p",
          (void*)base);
    OK(MPI_Win_shared_query(window, (rank + 1) % size, &bytes, &unit, &base));
    CHECK((bytes == 0) == (base == NULL) && (unit == 0) == (base == NULL), "another rank's memory is at %p",
          (void*)base);
    CHECK(base == NULL || is_local((rank + 1) % size), "another node's memory is at %p", (void*)base);
}

/* One operation after the other with the same arguments but for one: the type, whose handle the library may give again
 * for another when the first is freed, the count, the operation. */
static void almost_alike(MPI_Win window, int* cells) {
    enum { N = 8 };
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;
    int mine[N], theirs[N];
    for (int i = 0; i < N; ++i) mine[i] = stamp(rank, i), theirs[i] = stamp(left, i);
    for (int stride = 2; stride < 5; ++stride) {
        MPI_Datatype type;
        OK(MPI_Type_vector(N, 1, stride, MPI_INT, &type));
        OK(MPI_Type_commit(&type));
        for (int i = 0; i < N * stride; ++i) cells[i] = -1;
        OK(MPI_Win_fence(0, window));
        OK(MPI_Put(mine, N, MPI_INT, right, 0, 1, type, window));
        OK(MPI_Win_fence(0, window));
        for (int i = 0; i < N * stride; ++i)
            CHECK(cells[i] == (i % stride == 0 ? theirs[i / stride] : -1), "stride %d: cell %d holds %d",
                  stride, i, cells[i]);
        OK(MPI_Type_free(&type));
    }
    for (int count = 1; count <= N; ++count) {
        for (int i = 0; i < N; ++i) cells[i] = 3;
        OK(MPI_Win_fence(0, window));
        OK(MPI_Accumulate(mine, count, MPI_INT, right, 0, count, MPI_INT, MPI_SUM, window));
        OK(MPI_Accumulate(mine, count, MPI_INT, right, 0, count, MPI_INT, MPI_MIN, window));
        OK(MPI_Win_fence(0, window));
        for (int i = 0; i < N; ++i)
            CHECK(cells[i] == (i < count ? theirs[i] : 3), "count %d: cell %d holds %d", count, i, cells[i]);
    }
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, window));
}

/* A type of two ints, with blocks that have no data: what these would be made of is no part of an accumulate's element. */
static MPI_Datatype with_empty_blocks(void) {
    MPI_Datatype nothing, type;
    OK(MPI_Type_contiguous(0, MPI_DOUBLE, &nothing));
    int lengths[] = {1, 0, 1, 3};
    MPI_Aint places[] = {0, 2 * sizeof(int), sizeof(int), 4 * sizeof(int)};
    MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE, MPI_INT, nothing};
    OK(MPI_Type_create_struct(4, lengths, places, types, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Type_free(&nothing));
    return type;
}

static void empty_blocks(MPI_Win window, int* cells) {
    if (!sealed || nodes == 1) return; /* plain Open MPI and MPICH 5 refuse such types */
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;
    const int mine[] = {stamp(rank, 1), stamp(rank, 2)};
    int before[] = {0, 0};
    MPI_Datatype type = with_empty_blocks();
    for (int i = 0; i < 4; ++i) cells[i] = 1;
    OK(MPI_Win_fence(0, window));
    OK(MPI_Accumulate(mine, 2, MPI_INT, right, 0, 1, type, MPI_SUM, window));
    OK(MPI_Accumulate(mine, 1, type, right, 2, 2, MPI_INT, MPI_REPLACE, window));
    OK(MPI_Win_fence(0, window));
    CHECK(cells[0] == 1 + stamp(left, 1) && cells[1] == 1 + stamp(left, 2), "%d, %d", cells[0], cells[1]);
    CHECK(cells[2] == stamp(left, 1) && cells[3] == stamp(left, 2), "%d, %d", cells[2], cells[3]);
    OK(MPI_Win_fence(0, window));
    OK(MPI_Get_accumulate(mine, 1, type, before, 1, type, right, 2, 1, type, MPI_NO_OP, window));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, window));
    CHECK(before[0] == mine[0] && before[1] == mine[1], "%d, %d", before[0], before[1]);
    OK(MPI_Type_free(&type));
}

#ifdef HAVE_COUNT_VARIANTS
/* Displacements in units that an int cannot hold. The attribute, which is an int, cannot show them. */
static void wide_unit(void) {
    if (!sealed || nodes == 1) return; /* plain MPICH 5 crashes */
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;
    int cells[2] = {0, 0}, mine = stamp(rank, 3), *unit, found = 0;
    MPI_Win window;
    OK(MPI_Win_create_c(cells, sizeof cells, 5000000000, MPI_INFO_NULL, MPI_COMM_WORLD, &window));
    OK(MPI_Win_get_attr(window, MPI_WIN_DISP_UNIT, &unit, &found));
    CHECK(found && *unit == MPI_UNDEFINED, "the unit is %d", *unit);
    OK(MPI_Win_fence(0, window));
    OK(MPI_Put(&mine, 1, MPI_INT, right, 0, 1, MPI_INT, window));
    OK(MPI_Win_fence(0, window));
    CHECK(cells[0] == stamp(left, 3) && cells[1] == 0, "%d, %d", cells[0], cells[1]);
    OK(MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN));
    const int code = MPI_Put(&mine, 1, MPI_INT, right, 1, 1, MPI_INT, window);
    CHECK(class_of(code) == MPI_ERR_RMA_RANGE, "code %d for a place beyond the window", code);
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, window));
    OK(MPI_Win_free(&window));
    int* allocated;
    OK(MPI_Win_allocate_c(sizeof cells, 5000000000, MPI_INFO_NULL, MPI_COMM_WORLD, &allocated, &window));
    OK(MPI_Win_fence(0, window));
    OK(MPI_Put(&mine, 1, MPI_INT, right, 0, 1, MPI_INT, window));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, window));
    CHECK(allocated[0] == stamp(left, 3), "%d", allocated[0]);
    OK(MPI_Win_free(&window));
}
#endif

void rule_one_sided(void) {
    int *cells = memory(CELLS * sizeof *cells), *allocated;
    MPI_Win window;
    OK(MPI_Win_create(cells, CELLS * sizeof *cells, sizeof *cells, MPI_INFO_NULL, MPI_COMM_WORLD, &window));
    slices(window, cells);
    types(window, cells);
    almost_alike(window, cells);
    empty_blocks(window, cells);
    asked(window, cells);
    fewer_than_room(window, cells);
    free_asked(&window, cells);
    OK(MPI_Win_allocate(CELLS * sizeof *cells, sizeof *cells, MPI_INFO_NULL, MPI_COMM_WORLD, &allocated,
                        &window));
    slices(window, allocated);
    almost_alike(window, allocated);
    asked(window, allocated);
    fewer_than_room(window, allocated);
    own_memory(window, allocated);
    free_asked(&window, allocated);
#ifndef SANITIZED
    too_much();
#endif
    large();
    lengths();
    attached();
#ifdef HAVE_COUNT_VARIANTS
    wide_unit();
#endif
    other_communicators();
    free(cells);
}
