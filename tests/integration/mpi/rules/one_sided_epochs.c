/* Epochs between nodes that only some ranks take part in (post, start, complete, wait), and what MPI says of
 * calls in no epoch, of ranks, displacements and types that do not fit: an error of the window, of the class
 * that the standard names, and nothing is written. */
#include "harness.h"
#include "rules.h"

enum { CELLS = 64, ROUNDS = 10 };

static int* cells;
static MPI_Win window;

static MPI_Group group_of(int member) {
    MPI_Group all, one;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    OK(MPI_Group_incl(all, 1, &member, &one));
    OK(MPI_Group_free(&all));
    return one;
}

/* Everyone accesses its right neighbour and is accessed by its left one. */
static void around(void) {
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;
    MPI_Group to = group_of(right), from = group_of(left);
    for (int round = 0; round < ROUNDS; ++round) {
        int mine[CELLS], done = 0;
        for (int i = 0; i < CELLS; ++i) mine[i] = round * 1000 + rank * 10 + i;
        OK(MPI_Win_post(from, 0, window));
        OK(MPI_Win_start(to, 0, window));
        OK(MPI_Put(mine, CELLS, MPI_INT, right, 0, CELLS, MPI_INT, window));
        OK(MPI_Win_complete(window));
        if (round % 2)
            OK(MPI_Win_wait(window));
        else
            while (!done) OK(MPI_Win_test(window, &done));
        for (int i = 0; i < CELLS; ++i)
            CHECK(cells[i] == round * 1000 + left * 10 + i, "round %d: cell %d holds %d", round, i, cells[i]);
    }
    OK(MPI_Group_free(&to));
    OK(MPI_Group_free(&from));
}

/* The last rank exposes to all others, which add. */
static void all_to_one(void) {
    MPI_Group all, others, last = group_of(size - 1);
    int one = 1, end = size - 1;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    OK(MPI_Group_excl(all, 1, &end, &others));
    cells[3] = 0;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == size - 1) {
        OK(MPI_Win_post(others, 0, window));
        OK(MPI_Win_wait(window));
        CHECK(cells[3] == size - 1, "%d of %d were added", cells[3], size - 1);
    } else {
        OK(MPI_Win_start(last, 0, window));
        OK(MPI_Accumulate(&one, 1, MPI_INT, size - 1, 3, 1, MPI_INT, MPI_SUM, window));
        OK(MPI_Win_complete(window));
    }
    OK(MPI_Group_free(&all));
    OK(MPI_Group_free(&others));
    OK(MPI_Group_free(&last));
}

static void expect(int line, int code, int expected) {
    CHECK(class_of(code) == expected, "line %d: class %d instead of %d", line, class_of(code), expected);
}
#define EXPECT(call, expected) expect(__LINE__, (call), (expected))

static int put(int target, MPI_Aint displacement, int count) {
    static int values[2 * CELLS];
    return MPI_Put(values, count, MPI_INT, target, displacement, count, MPI_INT, window);
}

static void wrong_calls(void) {
    const int other = (rank + 1) % size;
    int value = 5;
    for (int i = 0; i < CELLS; ++i) cells[i] = 77;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (!plain_to(other)) {
        EXPECT(put(other, 0, 1), MPI_ERR_RMA_SYNC);
        EXPECT(MPI_Win_unlock(other, window), MPI_ERR_RMA_SYNC);
        EXPECT(MPI_Win_flush(other, window), MPI_ERR_RMA_SYNC);
        EXPECT(MPI_Win_complete(window), MPI_ERR_RMA_SYNC);
        EXPECT(MPI_Win_wait(window), MPI_ERR_RMA_SYNC);
        EXPECT(MPI_Win_lock(MPI_LOCK_SHARED, size, 0, window), MPI_ERR_RANK);
        EXPECT(MPI_Win_lock(12345, other, 0, window), MPI_ERR_LOCKTYPE);
    }
    OK(MPI_Win_lock(MPI_LOCK_SHARED, other, 0, window));
    if (!plain_to(other)) {
        EXPECT(MPI_Win_lock(MPI_LOCK_SHARED, other, 0, window), MPI_ERR_RMA_SYNC);
        EXPECT(put(size, 0, 1), MPI_ERR_RANK);
        EXPECT(put(other, CELLS, 1), MPI_ERR_RMA_RANGE);
        EXPECT(put(other, 1, CELLS), MPI_ERR_RMA_RANGE);
        EXPECT(put(other, (MPI_Aint)1 << 60, 1), MPI_ERR_RMA_RANGE);
        EXPECT(put(other, -1, 1), MPI_ERR_DISP);
        EXPECT(put(other, 0, -1), MPI_ERR_COUNT);
        EXPECT(MPI_Accumulate(&value, 1, MPI_INT, other, 0, 1, MPI_INT, MPI_MAXLOC, window), MPI_ERR_OP);
        int two[2] = {1, 2};
        EXPECT(MPI_Put(two, 2, MPI_INT, other, 0, 1, MPI_INT, window), MPI_ERR_TRUNCATE);
        EXPECT(MPI_Get(two, 1, MPI_INT, other, 0, 2, MPI_INT, window), MPI_ERR_TRUNCATE);
    }
    OK(put(MPI_PROC_NULL, 0, 1));
    OK(MPI_Win_unlock(other, window));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < CELLS; ++i) CHECK(cells[i] == 77, "a wrong call wrote %d to cell %d", cells[i], i);
}

/* Memory that is not attached to a dynamic window is out of reach: only its owner can know. */
static void not_attached(void) {
    int *attached = memory(64 * sizeof *attached), value = 1;
    MPI_Win own;
    MPI_Aint here, there;
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &own));
    OK(MPI_Win_set_errhandler(own, MPI_ERRORS_RETURN));
    for (int i = 0; i < 64; ++i) attached[i] = 77;
    OK(MPI_Win_attach(own, attached, 32 * sizeof *attached));
    OK(MPI_Get_address(attached, &here));
    OK(MPI_Sendrecv(&here, 1, MPI_AINT, left, 3, &there, 1, MPI_AINT, right, 3, MPI_COMM_WORLD,
                    MPI_STATUS_IGNORE));
    if (!plain_to(right)) {
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right, 0, own));
        OK(MPI_Put(&value, 1, MPI_INT, right, MPI_Aint_add(there, 32 * sizeof value), 1, MPI_INT, own));
        EXPECT(MPI_Win_flush(right, own), MPI_ERR_RMA_RANGE);
        OK(MPI_Get(&value, 1, MPI_INT, right, MPI_Aint_add(there, 32 * sizeof value), 1, MPI_INT, own));
        EXPECT(MPI_Win_unlock(right, own), MPI_ERR_RMA_RANGE);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK(attached[32] == 77, "memory beside what is attached was written");
    if (sealed && nodes > 1) {
        EXPECT(MPI_Win_detach(own, attached + 1), MPI_ERR_RMA_ATTACH);
        EXPECT(MPI_Win_attach(own, attached + 8, 4), MPI_ERR_RMA_ATTACH);
    }
    OK(MPI_Win_detach(own, attached));
    OK(MPI_Win_free(&own));
    free(attached);
}

/* Memory of no bytes overlaps nothing, and each attachment of it is detached by itself. */
static void attached_empty(void) {
    if (!sealed || nodes == 1) return; /* plain Open MPI refuses NULL, plain MPICH detaches NULL once */
    int *attached = memory(16 * sizeof *attached), value = rank + 1;
    MPI_Win own;
    MPI_Aint here, there;
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &own));
    OK(MPI_Win_set_errhandler(own, MPI_ERRORS_RETURN));
    OK(MPI_Win_attach(own, NULL, 0));
    OK(MPI_Win_attach(own, NULL, 0));
    OK(MPI_Win_attach(own, attached, 0));
    OK(MPI_Win_attach(own, attached, 16 * sizeof *attached));
    OK(MPI_Win_attach(own, attached, 0));
    OK(MPI_Win_attach(own, attached + 4, 0));
    EXPECT(MPI_Win_attach(own, attached, sizeof *attached), MPI_ERR_RMA_ATTACH);
    OK(MPI_Win_detach(own, attached));
    OK(MPI_Win_detach(own, attached));
    OK(MPI_Win_detach(own, NULL));
    OK(MPI_Win_detach(own, NULL));
    EXPECT(MPI_Win_detach(own, NULL), MPI_ERR_RMA_ATTACH);
    OK(MPI_Win_detach(own, attached + 4));
    EXPECT(MPI_Win_detach(own, attached + 4), MPI_ERR_RMA_ATTACH);
    /* The part that has bytes is still attached. */
    OK(MPI_Get_address(attached, &here));
    OK(MPI_Sendrecv(&here, 1, MPI_AINT, left, 3, &there, 1, MPI_AINT, right, 3, MPI_COMM_WORLD,
                    MPI_STATUS_IGNORE));
    OK(MPI_Win_fence(0, own));
    OK(MPI_Put(&value, 1, MPI_INT, right, MPI_Aint_add(there, 15 * sizeof value), 1, MPI_INT, own));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, own));
    CHECK(attached[15] == left + 1, "%d was put", attached[15]);
    OK(MPI_Win_detach(own, attached));
    EXPECT(MPI_Win_detach(own, attached), MPI_ERR_RMA_ATTACH);
    OK(MPI_Win_free(&own));
    free(attached);
}

void rule_one_sided_epochs(void) {
    OK(MPI_Win_allocate(CELLS * sizeof *cells, sizeof *cells, MPI_INFO_NULL, MPI_COMM_WORLD, &cells,
                        &window));
    OK(MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN));
    around();
    all_to_one();
    wrong_calls();
    OK(MPI_Win_free(&window));
    not_attached();
    attached_empty();
}
