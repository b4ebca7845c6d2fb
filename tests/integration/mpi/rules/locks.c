/* M5: MPIsec takes locks of its own before those of a window inside a node. They must exclude what the MPI
 * standard says (section 12.5.3) and nothing else: exclusive ones everybody, shared ones only exclusive ones;
 * and who waits for a lock gets it, however busy the others are. */
#include "harness.h"
#include "rules.h"

enum { ROUNDS = 40, TAG = 75 };

static MPI_Win window;
static int cells[2], here, me;

static int read_cell(int target, int index) {
    int value;
    OK(MPI_Get(&value, 1, MPI_INT, target, index, 1, MPI_INT, window));
    OK(MPI_Win_flush(target, window));
    return value;
}

static void write_cell(int target, int index, int value) {
    OK(MPI_Put(&value, 1, MPI_INT, target, index, 1, MPI_INT, window));
    OK(MPI_Win_flush(target, window));
}

/* Everyone adds to everyone's first cell, by reading and writing: without exclusion some of that is lost. The
 * second cell is the first one's copy; who looks at both under a shared lock finds them alike. */
static void count(void) {
    for (int round = 0; round < ROUNDS; ++round) {
        int target = (me + round) % here;
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window));
        int value = read_cell(target, 0) + 1;
        write_cell(target, 0, value);
        write_cell(target, 1, value);
        OK(MPI_Win_unlock(target, window));

        target = (me + 2 * round + 1) % here;
        OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, window));
        int first = read_cell(target, 0), copy = read_cell(target, 1);
        OK(MPI_Win_unlock(target, window));
        CHECK(first == copy, "a shared lock saw %d and %d: somebody was writing", first, copy);

        OK(MPI_Win_lock_all(0, window));
        for (target = 0; target < here; ++target) {
            first = read_cell(target, 0), copy = read_cell(target, 1);
            CHECK(first == copy, "a lock of all saw %d and %d: somebody was writing", first, copy);
        }
        OK(MPI_Win_unlock_all(window));
    }
}

static int total(void) {
    int mine, sum = 0;
    OK(MPI_Win_lock(MPI_LOCK_SHARED, me, 0, window));
    mine = read_cell(me, 0);
    OK(MPI_Win_unlock(me, window));
    MPI_Comm comm;
    MPI_Group group;
    OK(MPI_Win_get_group(window, &group));
    OK(MPI_Comm_create_group(MPI_COMM_WORLD, group, TAG, &comm));
    OK(MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Group_free(&group));
    return sum;
}

/* Ranks that share a lock do not wait for each other, not even while a third wants it alone: 0 gives it back
 * only when 1 has it too. Plain MPIs serve them in the order of asking, and may wait for ever. */
static void share(MPI_Comm node) {
    int word = 0;
    if (here < 2 || !sealed) return;
    if (me == 0) {
        OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window));
        for (int other = 1; other < here; ++other) OK(MPI_Send(&word, 1, MPI_INT, other, TAG, node));
        OK(MPI_Recv(&word, 1, MPI_INT, 1, TAG, node, MPI_STATUS_IGNORE)); /* 1 has it */
        OK(MPI_Win_unlock(0, window));
    } else {
        OK(MPI_Recv(&word, 1, MPI_INT, 0, TAG, node, MPI_STATUS_IGNORE));
        OK(MPI_Win_lock(me == 1 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, 0, 0, window));
        if (me == 1) OK(MPI_Send(&word, 1, MPI_INT, 0, TAG, node));
        OK(MPI_Win_unlock(0, window));
    }
}

/* What the program says not to check is not checked. */
static void unchecked(void) {
    OK(MPI_Win_lock_all(MPI_MODE_NOCHECK, window));
    (void)read_cell((me + 1) % here, 0);
    OK(MPI_Win_unlock_all(window));
    OK(MPI_Win_fence(0, window));
    if (me == 0) {
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, here - 1, MPI_MODE_NOCHECK, window));
        (void)read_cell(here - 1, 0);
        OK(MPI_Win_unlock(here - 1, window));
    }
}

void rule_locks(void) {
    MPI_Comm node;
#if defined(MPICH_NUMVERSION) && MPICH_NUMVERSION < 50000000
    return; /* MPICH 4.0: what MPI_Get gets comes after MPI_Win_flush, with and without MPIsec */
#endif
    OK(MPI_Comm_split(MPI_COMM_WORLD, node_of[rank], rank, &node));
    OK(MPI_Comm_size(node, &here));
    OK(MPI_Comm_rank(node, &me));
    if (here == 1) { /* nobody to wait for; Open MPI 4.1 makes no window of one rank over TCP */
        OK(MPI_Comm_free(&node));
        return;
    }
    cells[0] = cells[1] = 0;
    OK(MPI_Win_create(cells, sizeof cells, sizeof(int), MPI_INFO_NULL, node, &window));
    OK(MPI_Barrier(node));
    count();
    OK(MPI_Barrier(node));
    int sum = total();
    CHECK(sum == here * ROUNDS, "%d ranks added 1 to cells %d times each, and these hold %d", here, ROUNDS,
          sum);
    OK(MPI_Barrier(node));
    share(node);
    OK(MPI_Barrier(node));
    if (here > 1) unchecked();
    OK(MPI_Win_free(&window));
    OK(MPI_Comm_free(&node));
}
