/* M8: blocks that a collective receives may overlap where MPI libraries do not mind: MPI_Alltoallw counts its
 * displacements in bytes, and programs take them for elements. What is there then is of one of the blocks. */
#include "harness.h"
#include "rules.h"

enum { EACH = 64, STEP = 12, ROUNDS = 20, MOST = 64 };

/* Blocks of sends and receives that begin at one address, by types whose data do not meet. */
static void at_one_address(void) {
    enum { APART = 8 };
    int data[2 * APART] = {0}, lengths = 1, places = APART;
    MPI_Datatype indexed, later;
    if (size > APART) return;
    for (int i = 0; i < size; ++i) data[APART + i] = 100 * rank + i;
    OK(MPI_Type_indexed(1, &lengths, &places, MPI_INT, &indexed));
    OK(MPI_Type_create_resized(indexed, 0, sizeof(int), &later));
    OK(MPI_Type_commit(&later));
    OK(MPI_Alltoall(data, 1, later, data, 1, MPI_INT, MPI_COMM_WORLD));
    for (int i = 0; i < size; ++i) CHECK(data[i] == 100 * i + rank, "%d from rank %d", data[i], i);
    OK(MPI_Allgather(data, 1, later, data, 1, MPI_INT, MPI_COMM_WORLD));
    for (int i = 0; i < size; ++i) CHECK(data[i] == 100 * i, "%d gathered from rank %d", data[i], i);
    OK(MPI_Type_free(&later));
    OK(MPI_Type_free(&indexed));
}

void rule_overlapping_blocks(void) {
    static unsigned char out[EACH * MOST], in[EACH * MOST];
    int counts[MOST], from[MOST], to[MOST];
    MPI_Datatype types[MOST];
    at_one_address();
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
