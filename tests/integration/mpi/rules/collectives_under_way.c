/* M8, M12: any number of non-blocking collectives may be under way on a communicator, and complete in any order: each gets the data of the
 * call with its place in the order of the calls (MPI standard section 6.12). */
#include "harness.h"
#include "rules.h"

enum { CALLS = 12, LONGEST = 30000 };

static void start(int which, int root, int* data, int* out, int n, MPI_Request* request) {
    switch (which % 4) {
        case 0:
            OK(MPI_Ibcast(data, n, MPI_INT, root, MPI_COMM_WORLD, request));
            break;
        case 1:
            OK(MPI_Iallreduce(data, out, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD, request));
            break;
        case 2:
            OK(MPI_Ireduce(data, out, n, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD, request));
            break;
        default:
            OK(MPI_Ibarrier(MPI_COMM_WORLD, request));
    }
}

static int expected(int which, int root, int value) {
    const int sum = size * value + size * (size - 1) / 2;
    return which % 4 == 0 ? value + root : which % 4 == 1 || (which % 4 == 2 && rank == root) ? sum : -1;
}

static void round_of(int round, int kinds, int n) {
    static int data[CALLS][LONGEST], out[CALLS][LONGEST];
    MPI_Request requests[CALLS];
    for (int i = 0; i < CALLS; ++i) {
        const int which = kinds == 0 ? 0 : i + round;
        for (int k = 0; k < n; ++k) data[i][k] = 100 * round + i + rank, out[i][k] = -1;
        start(which, i % size, data[i], out[i], n, &requests[i]);
    }
    for (int left = CALLS; left > 0; --left) {
        int done = 0;
        if (round % 3 == 0) {
            OK(MPI_Waitany(CALLS, requests, &done, MPI_STATUS_IGNORE));
        } else { /* some rank waits for the last ones first */
            done = (round + rank) % 2 ? left - 1 : CALLS - left;
            OK(MPI_Wait(&requests[done], MPI_STATUS_IGNORE));
        }
        const int which = kinds == 0 ? 0 : done + round;
        const int* got = which % 4 == 0 ? data[done] : out[done];
        const int value = expected(which, done % size, 100 * round + done);
        for (int k = 0; k < n && which % 4 != 3; ++k)
            CHECK(got[k] == value, "round %d, call %d: number %d is %d instead of %d", round, done, k, got[k],
                  value);
    }
}

void rule_collectives_under_way(void) {
    for (int round = 0; round < 24; ++round) {
        round_of(round, 0, round % 2 ? 200 : LONGEST);
        round_of(round, 1, round % 2 ? 200 : LONGEST);
    }
}
