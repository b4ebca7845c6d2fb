/* M8: blocks that a collective receives may overlap where MPI libraries do not mind: MPI_Alltoallw counts its
 * displacements in bytes, and programs take them for elements. What is there then is of one of the blocks. */
#include "harness.h"
#include "rules.h"

enum { EACH = 64, STEP = 12, ROUNDS = 20, MOST = 64 };

void rule_overlapping_blocks(void) {
    static unsigned char out[EACH * MOST], in[EACH * MOST];
    int counts[MOST], from[MOST], to[MOST];
    MPI_Datatype types[MOST];
    if (size > MOST) return;
    for (int i = 0; i < size; ++i) {
        counts[i] = EACH;
        from[i] = i * EACH;
        to[i] = i * STEP;
        types[i] = MPI_BYTE;
    }
    for (int round = 1; round <= ROUNDS; ++round) {
        MPI_Request request;
        memset(out, rank + 1, sizeof out);
        memset(in, 0, sizeof in);
        OK(MPI_Ialltoallw(out, counts, from, types, in, counts, to, types, MPI_COMM_WORLD, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        for (int at = 0; at < STEP * (size - 1) + EACH; ++at) {
            const int sender = in[at] - 1;
            CHECK(sender >= 0 && sender < size && to[sender] <= at && at < to[sender] + EACH,
                  "round %d: byte %d is %d, which no block has there", round, at, in[at]);
        }
    }
}
