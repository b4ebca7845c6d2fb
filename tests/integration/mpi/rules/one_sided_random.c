/* Random one-sided traffic against a model. Each round divides everybody's window into blocks by a generator that
 * all ranks run alike; a block is put by one rank, accumulated by all, fetched from, swapped, or read. Every rank
 * does its part, in epochs of changing kinds, and does all ranks' parts to a model of all windows in its memory.
 * What is fetched and what is in the window at the end is what the model says. */
#include "harness.h"
#include "rules.h"

enum { CELLS = 24000, ROUNDS = 12, MOST_GETS = 4096 };
enum kind { PUT, PUT_STRIDED, RPUT, ACCUMULATE, FETCH_ONE, GET_ACCUMULATE, SWAP, GET, RGET, NOTHING, KINDS };

struct block {
    enum kind kind;
    int origin, first, cells, op;
};

static uint64_t state; /* of the generator that is the same on all ranks */
static uint64_t next(void) {
    state += 0x9e3779b97f4a7c15u;
    uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static int64_t* model;                 /* of all windows */
static int64_t* cells;                 /* this rank's */
static unsigned char last_kind[CELLS]; /* what was done to each of them in this round */
static MPI_Win window;

static int64_t value(int round, int origin, int target, int cell) {
    return (int64_t)(seed_of(origin + 1, target + 1, round + 1, cell + 1) * 2654435761u % 1000003);
}

static struct block draw(int first) {
    static const int most[] = {1, 3, 40, 700, 9000};
    struct block block = {(enum kind)(next() % KINDS), (int)(next() % (unsigned)size), first,
                          1 + (int)(next() % (unsigned)most[next() % 5]), (int)(next() % 3)};
    if (block.kind == SWAP || block.kind == FETCH_ONE) block.cells = 1;
    if (first + block.cells > CELLS) block.cells = CELLS - first;
    return block;
}

static int64_t apply(int op, int64_t old, int64_t new) {
    return op == 0 ? old + new : op == 1 ? (old > new ? old : new) : (old ^ new);
}
static MPI_Op op_of(const struct block* block) {
    return block->op == 0 ? MPI_SUM : block->op == 1 ? MPI_MAX : MPI_BXOR;
}

/* Memory that operations of this round use, and what it must hold when they have ended. */
static struct {
    int64_t *got, *expected;
    int n;
} fetched[MOST_GETS];
static void* kept[4 * MOST_GETS];
static int fetches, keeps;

static int64_t* keep(size_t n) {
    CHECK(keeps < 4 * MOST_GETS, "too many operations in one round");
    return kept[keeps++] = memory(n * sizeof(int64_t));
}
static int64_t* fetch(const struct block* block, const int64_t* before) {
    CHECK(fetches < MOST_GETS, "too many fetches in one round");
    fetched[fetches].got = keep((size_t)block->cells);
    fetched[fetches].expected = keep((size_t)block->cells);
    fetched[fetches].n = block->cells;
    memcpy(fetched[fetches].expected, before, (size_t)block->cells * sizeof *before);
    return fetched[fetches++].got;
}

static int64_t* values(int round, int target, const struct block* block) {
    int64_t* mine = keep((size_t)block->cells);
    for (int i = 0; i < block->cells; ++i) mine[i] = value(round, rank, target, block->first + i);
    return mine;
}

static void put_strided(int target, const struct block* block, const int64_t* mine) {
    MPI_Datatype every_second;
    OK(MPI_Type_vector((block->cells + 1) / 2, 1, 2, MPI_INT64_T, &every_second));
    OK(MPI_Type_commit(&every_second));
    OK(MPI_Put(mine, 1, every_second, target, block->first, 1, every_second, window));
    OK(MPI_Type_free(&every_second));
}

/* What this rank does to a block; `before`: what the model says it holds. */
static void access_block(int round, int target, const struct block* block, const int64_t* before,
                         int passive) {
    const int n = block->cells, at = block->first;
    MPI_Request request = MPI_REQUEST_NULL;
    const int all = block->kind == ACCUMULATE || block->kind == GET || block->kind == RGET;
    if (!all && block->origin != rank) return;
    const int64_t* mine = values(round, target, block);
    switch (block->kind) {
        case PUT:
            OK(MPI_Put(mine, n, MPI_INT64_T, target, at, n, MPI_INT64_T, window));
            break;
        case PUT_STRIDED:
            put_strided(target, block, mine);
            break;
        case RPUT:
            if (passive)
                OK(MPI_Rput(mine, n, MPI_INT64_T, target, at, n, MPI_INT64_T, window, &request));
            else
                OK(MPI_Put(mine, n, MPI_INT64_T, target, at, n, MPI_INT64_T, window));
            break;
        case ACCUMULATE:
            OK(MPI_Accumulate(mine, n, MPI_INT64_T, target, at, n, MPI_INT64_T, op_of(block), window));
            break;
        case FETCH_ONE:
            OK(MPI_Fetch_and_op(mine, fetch(block, before), MPI_INT64_T, target, at, op_of(block), window));
            break;
        case GET_ACCUMULATE:
            OK(MPI_Get_accumulate(mine, n, MPI_INT64_T, fetch(block, before), n, MPI_INT64_T, target, at, n,
                                  MPI_INT64_T, op_of(block), window));
            break;
        case SWAP: {
            int64_t* compare = keep(1);
            *compare = *before + (block->op == 1);
            OK(MPI_Compare_and_swap(mine, compare, fetch(block, before), MPI_INT64_T, target, at, window));
            break;
        }
        case GET:
            OK(MPI_Get(fetch(block, before), n, MPI_INT64_T, target, at, n, MPI_INT64_T, window));
            break;
        case RGET:
            if (passive)
                OK(MPI_Rget(fetch(block, before), n, MPI_INT64_T, target, at, n, MPI_INT64_T, window,
                            &request));
            else
                OK(MPI_Get(fetch(block, before), n, MPI_INT64_T, target, at, n, MPI_INT64_T, window));
            break;
        default:
            break;
    }
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

/* What all ranks do to it. */
static void access_model(int round, int target, const struct block* block, int64_t* there) {
    for (int i = 0; i < block->cells; ++i) {
        const int64_t new = value(round, block->origin, target, block->first + i);
        if (block->kind == PUT || block->kind == RPUT || (block->kind == PUT_STRIDED && i % 2 == 0))
            there[i] = new;
        if (block->kind == FETCH_ONE || block->kind == GET_ACCUMULATE)
            there[i] = apply(block->op, there[i], new);
        if (block->kind == SWAP && block->op != 1) there[i] = new;
        if (block->kind == ACCUMULATE)
            for (int from = 0; from < size; ++from)
                there[i] = apply(block->op, there[i], value(round, from, target, block->first + i));
    }
}

static void access_all(int round, int passive) {
    for (int target = 0; target < size; ++target)
        for (int first = 0; first < CELLS;) {
            struct block block = draw(first);
            int64_t* there = model + (size_t)target * CELLS + first;
            access_block(round, target, &block, there, passive);
            access_model(round, target, &block, there);
            if (target == rank) memset(last_kind + first, block.kind, (size_t)block.cells);
            first += block.cells;
        }
}

static void check_round(int round) {
    for (int i = 0; i < fetches; ++i)
        for (int cell = 0; cell < fetched[i].n; ++cell)
            CHECK(fetched[i].got[cell] == fetched[i].expected[cell],
                  "round %d: fetch %d got %lld instead of %lld", round, i, (long long)fetched[i].got[cell],
                  (long long)fetched[i].expected[cell]);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window));
    const int64_t* mine = model + (size_t)rank * CELLS;
    for (int cell = 0; cell < CELLS; ++cell)
        CHECK(cells[cell] == mine[cell], "round %d: cell %d holds %lld instead of %lld after kind %d", round,
              cell, (long long)cells[cell], (long long)mine[cell], last_kind[cell]);
    OK(MPI_Win_unlock(rank, window));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    while (keeps > 0) free(kept[--keeps]);
    fetches = 0;
}

void rule_one_sided_random(void) {
#ifdef OPEN_MPI /* 5.0.11 plain, over TCP, loses some of the accumulations and fetches of several ranks */
    if (!sealed || nodes == 1) return;
#endif
    OK(MPI_Win_allocate(CELLS * sizeof *cells, sizeof *cells, MPI_INFO_NULL, MPI_COMM_WORLD, &cells,
                        &window));
    model = memory((size_t)size * CELLS * sizeof *model);
    memset(model, 0, (size_t)size * CELLS * sizeof *model);
    memset(cells, 0, CELLS * sizeof *cells);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    const char* wanted = getenv("MPISEC_LAB_ROUNDS");
    const int rounds = wanted ? atoi(wanted) : ROUNDS;
    for (int round = 0; round < rounds; ++round) {
        state = 20261124u + (uint64_t)round;
        const int passive = next() % 2 != 0;
        OK(passive ? MPI_Win_lock_all(0, window) : MPI_Win_fence(0, window));
        access_all(round, passive);
        OK(passive ? MPI_Win_unlock_all(window) : MPI_Win_fence(MPI_MODE_NOSUCCEED, window));
        check_round(round);
    }
    OK(MPI_Win_free(&window));
    free(model);
}
