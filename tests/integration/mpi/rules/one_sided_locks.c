/* Passive targets between nodes: locks exclude what they must, flushes tell the truth, and what is read and
 * changed at once is not changed in between, whoever of the same or another node does so. */
#include "harness.h"
#include "rules.h"

enum { ROUNDS = 25, TURNS = 20 };

static long*
    cells; /* 0: counted under exclusive locks; 1: its copy; 2, 3: counted by atomics; from 4: others */
static MPI_Win window;

static long at(int target, int index) {
    long value;
    OK(MPI_Get(&value, 1, MPI_LONG, target, index, 1, MPI_LONG, window));
    OK(MPI_Win_flush(target, window));
    return value;
}

static void exclusive_and_shared(void) {
    for (int round = 0; round < ROUNDS; ++round) {
        int target = (rank + round) % size;
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window));
        long value = at(target, 0) + 1;
        OK(MPI_Put(&value, 1, MPI_LONG, target, 0, 1, MPI_LONG, window));
        OK(MPI_Win_flush_local(target, window));
        OK(MPI_Put(&value, 1, MPI_LONG, target, 1, 1, MPI_LONG, window));
        OK(MPI_Win_unlock(target, window));
        target = (rank + 2 * round + 1) % size;
        OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, window));
        long first = at(target, 0), copy = at(target, 1);
        OK(MPI_Win_unlock(target, window));
        CHECK(first == copy, "a shared lock saw %ld and %ld: somebody was writing", first, copy);
    }
}

/* More operations that fetch at once than an MPI library can have receives. */
static void many_at_once(void) {
    enum { MANY = 6000 };
    static long fetched[MANY];
    const int other = size - 1 - rank;
    OK(MPI_Barrier(MPI_COMM_WORLD)); /* no other rank locks anything any more */
    if (other == rank) return;
    memset(fetched, -1, sizeof fetched);
    OK(MPI_Win_lock(MPI_LOCK_SHARED, other, 0, window));
    int told = 0; /* both begin at the same time: then neither serves the other's */
    OK(MPI_Sendrecv(&rank, 1, MPI_INT, other, 0, &told, 1, MPI_INT, other, 0, MPI_COMM_WORLD,
                    MPI_STATUS_IGNORE));
    for (int i = 0; i < MANY; ++i) OK(MPI_Get(&fetched[i], 1, MPI_LONG, other, i % 2, 1, MPI_LONG, window));
    OK(MPI_Win_unlock(other, window));
    for (int i = 0; i < MANY; ++i) CHECK(fetched[i] >= 0, "get %d has fetched %ld", i, fetched[i]);
}

static void atomics(void) {
    const long one = 1;
    long before, sum = 0;
    OK(MPI_Win_lock_all(0, window));
    for (int round = 0; round < ROUNDS; ++round) {
        int target = round % size;
        OK(MPI_Fetch_and_op(&one, &before, MPI_LONG, target, 2, MPI_SUM, window));
        OK(MPI_Win_flush(target, window));
        sum += before;
        for (long seen = at(target, 3), found;; seen = found) {
            long next = seen + 1;
            OK(MPI_Compare_and_swap(&next, &seen, &found, MPI_LONG, target, 3, window));
            OK(MPI_Win_flush(target, window));
            if (found == seen) break;
        }
        long pair[2] = {rank + 1, 1}, was[2] = {-1, -1};
        OK(MPI_Get_accumulate(pair, 2, MPI_LONG, was, 2, MPI_LONG, target, 4, 2, MPI_LONG, MPI_SUM, window));
        OK(round % 2 ? MPI_Win_flush_local(target, window) : MPI_Win_flush_local_all(window));
        OK(MPI_Win_sync(window));
        CHECK(was[0] >= 0 && was[1] >= 0, "nothing was fetched: %ld, %ld", was[0], was[1]);
        OK(MPI_Fetch_and_op(NULL, &before, MPI_LONG, target, 5, MPI_NO_OP, window));
        OK(MPI_Win_flush_all(window));
        CHECK(before > was[1], "read %ld after %ld were there", before, was[1]);
    }
    OK(MPI_Win_unlock_all(window));
    CHECK(sum >= 0, "sum %ld", sum);
}

/* Shared locks do not wait for each other, also where one asks for an exclusive lock in between: the first rank has
 * its lock until the last one has it too. */
static void shared_together(void) {
    const int last = size - 1;
    if (size < 3) return;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) {
        OK(MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window));
        (void)at(1, 0);
        OK(MPI_Send(NULL, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD));
        OK(MPI_Recv(NULL, 0, MPI_BYTE, last, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Win_unlock(1, window));
    } else if (rank == 1) {
        OK(MPI_Recv(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Send(NULL, 0, MPI_BYTE, last, 0, MPI_COMM_WORLD));
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, window));
        OK(MPI_Win_unlock(1, window));
    } else if (rank == last) {
        OK(MPI_Recv(NULL, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        sleep_seconds(0.05);
        OK(MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window));
        (void)at(1, 0);
        OK(MPI_Send(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD));
        OK(MPI_Win_unlock(1, window));
    }
}

/* Everybody's additions are there, once each. */
static void check_counts(void) {
    long times = 0, turns_of_all = 0;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int other = 0; other < size; ++other)
        for (int round = 0; round < ROUNDS; ++round) {
            times += (other + round) % size == rank;
            turns_of_all += round % size == rank;
        }
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window));
    CHECK(cells[0] == times && cells[1] == times, "exclusive locks counted %ld and %ld of %ld", cells[0],
          cells[1], times);
    CHECK(cells[2] == turns_of_all && cells[3] == turns_of_all && cells[5] == turns_of_all,
          "atomics counted %ld, %ld and %ld of %ld", cells[2], cells[3], cells[5], turns_of_all);
    CHECK(cells[4] == turns_of_all / size * size * (size + 1) / 2, "accumulated %ld", cells[4]);
    OK(MPI_Win_unlock(rank, window));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

/* All add to the same cells at the same time, to every second of the first rank's: none is lost. */
static void contended(void) {
    enum { MANY = 1024 };
    const int additions = sealed ? 1000 : 20; /* plain Open MPI takes a millisecond for each */
    long *sums, *ones = memory(MANY * sizeof *ones);
    MPI_Win own;
    MPI_Datatype every_second;
    OK(MPI_Type_vector(MANY / 2, 1, 2, MPI_LONG, &every_second));
    OK(MPI_Type_commit(&every_second));
    OK(MPI_Win_allocate(MANY * sizeof *sums, sizeof *sums, MPI_INFO_NULL, MPI_COMM_WORLD, &sums, &own));
    for (int i = 0; i < MANY; ++i) sums[i] = 0, ones[i] = 1;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(0, own));
    for (int addition = 0; addition < additions; ++addition)
        OK(MPI_Accumulate(ones, MANY / 2, MPI_LONG, 0, 0, 1, every_second, MPI_SUM, own));
    OK(MPI_Win_unlock_all(own));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, own));
    for (int i = 0; i < MANY && rank == 0; i += 2)
        CHECK(sums[i] == size * additions, "cell %d counted %ld additions of %d", i, sums[i],
              size * additions);
    OK(MPI_Win_unlock(rank, own));
    OK(MPI_Win_free(&own));
    OK(MPI_Type_free(&every_second));
    free(ones);
}

/* What is read under a lock is what was there then: who has the lock next changes nothing of it, however long it
 * takes to send. */
static void whole(void) {
    enum { MANY = 1 << 17 };
    long *all, *mine = memory(MANY * sizeof *mine);
    MPI_Win own;
    OK(MPI_Win_allocate(rank == 0 ? MANY * sizeof *all : 0, sizeof *all, MPI_INFO_NULL, MPI_COMM_WORLD, &all,
                        &own));
    for (int i = 0; i < MANY && rank == 0; ++i) all[i] = -1;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int turn = 0; turn < TURNS / 2; ++turn) {
        OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, own));
        OK(MPI_Get(mine, MANY, MPI_LONG, 0, 0, MANY, MPI_LONG, own));
        OK(MPI_Win_unlock(0, own));
        int differ = 0;
        for (int i = 1; i < MANY; ++i) differ += mine[i] != mine[0];
        CHECK(differ == 0, "%d elements of %d were written while they were read", differ, MANY);
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, own));
        for (int i = 0; i < MANY; ++i) (rank == 0 ? all : mine)[i] = rank + 1000 * turn;
        if (rank != 0) OK(MPI_Put(mine, MANY, MPI_LONG, 0, 0, MANY, MPI_LONG, own));
        OK(MPI_Win_unlock(0, own));
    }
    OK(MPI_Win_free(&own));
    free(mine);
}

/* The forms with requests end in MPI_Wait; MPI_MINLOC is of pairs with gaps. */
static void requests(void) {
    struct {
        double value;
        int index;
    } pair = {100.0 - rank, rank}, *pairs, got = {0, 0};
    MPI_Win own;
    MPI_Request request[3];
    int numbers[4] = {rank, rank, rank, rank}, back[4] = {-1, -1, -1, -1};
    const int right = (rank + 1) % size;
    OK(MPI_Win_allocate(2 * sizeof *pairs, sizeof *pairs, MPI_INFO_NULL, MPI_COMM_WORLD, &pairs, &own));
    memset(pairs, 0, 2 * sizeof *pairs);
    pairs[0].value = 1e9;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(MPI_MODE_NOCHECK, own));
    OK(MPI_Raccumulate(&pair, 1, MPI_DOUBLE_INT, 0, 0, 1, MPI_DOUBLE_INT, MPI_MINLOC, own, &request[0]));
    OK(MPI_Rput(numbers, 4, MPI_INT, right, 1, 4, MPI_INT, own, &request[1]));
    OK(MPI_Waitall(2, request, MPI_STATUSES_IGNORE));
    OK(MPI_Win_flush_all(own));
    OK(MPI_Rget(back, 4, MPI_INT, right, 1, 4, MPI_INT, own, &request[2]));
    OK(MPI_Wait(&request[2], MPI_STATUS_IGNORE));
    CHECK(request[2] == MPI_REQUEST_NULL && back[0] == rank && back[3] == rank, "got %d, %d", back[0],
          back[3]);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Rget_accumulate(&pair, 1, MPI_DOUBLE_INT, &got, 1, MPI_DOUBLE_INT, 0, 0, 1, MPI_DOUBLE_INT,
                           MPI_NO_OP, own, &request[0]));
    for (int done = 0; !done;) OK(MPI_Test(&request[0], &done, MPI_STATUS_IGNORE));
    CHECK(got.value == 101.0 - size && got.index == size - 1, "the least is %g of %d", got.value, got.index);
    OK(MPI_Win_unlock_all(own));
    OK(MPI_Win_free(&own));
}

/* A target that is in other calls of MPI serves all the same; messages, also large ones, go on beside. */
static void progress(void) {
    const int other = partner_in(1);
    const size_t bytes = 300000;
    unsigned char *out = memory(bytes), *in = memory(bytes);
    if (other != rank)
        for (int turn = 0; turn < TURNS; ++turn) {
            long value = turn;
            MPI_Request coming;
            fill(out, bytes, seed_of(rank, other, turn, (int)bytes));
            OK(MPI_Irecv(in, (int)bytes, MPI_BYTE, other, turn, MPI_COMM_WORLD, &coming));
            OK(MPI_Win_lock(turn % 2 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, other, 0, window));
            OK(MPI_Put(&value, 1, MPI_LONG, other, 6, 1, MPI_LONG, window));
            OK(MPI_Send(out, (int)bytes, MPI_BYTE, other, turn, MPI_COMM_WORLD));
            OK(MPI_Win_unlock(other, window));
            OK(MPI_Wait(&coming, MPI_STATUS_IGNORE));
            CHECK_FILLED(in, bytes, seed_of(other, rank, turn, (int)bytes));
        }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    free(out);
    free(in);
}

void rule_one_sided_locks(void) {
    OK(MPI_Win_allocate(16 * sizeof *cells, sizeof *cells, MPI_INFO_NULL, MPI_COMM_WORLD, &cells, &window));
    memset(cells, 0, 16 * sizeof *cells);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    exclusive_and_shared();
    shared_together();
    many_at_once();
    atomics();
    check_counts();
    contended();
    whole();
    requests();
    progress();
    OK(MPI_Win_free(&window));
}
