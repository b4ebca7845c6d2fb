/* M5 inside a node: while a rank waits in what its node does together, its large message to another node must
 * get through, because others of the node wait for such a message before they join in. So too when all of
 * them do it together, while they wait for each other in the node's shared memory. The first two ranks of two
 * nodes, crosswise:
 *
 *     node A: a0 starts a send to b0, then joins      a1 receives from b1, then joins
 *     node B: b1 starts a send to a1, then joins      b0 receives from a0, then joins */
#include "harness.h"
#include "rules.h"

/* BIG: of more segments than are given to MPI at once, so that MPI alone cannot bring the message through.
 */
enum { BIG = 12 << 20, TAG = 70, BLOCK = 70000 };
enum { BARRIER, ALLREDUCE, SCAN, DUP, SPLIT, GROUP, FENCE, FIRST_OF_FOUR };
enum { FOUR_BARRIER = FIRST_OF_FOUR, FOUR_ALLGATHER, FOUR_ALLREDUCE, FOUR_NONBLOCKING, WAYS };

static MPI_Comm node, four; /* four: those of both nodes */
static MPI_Win window;

static void join(int way) {
    int one = 1, sum = 0;
    MPI_Comm made = MPI_COMM_NULL;
    MPI_Group group;
    MPI_Request request;
    static char mine[BLOCK], all[4 * BLOCK];
    switch (way) {
        case BARRIER:
            OK(MPI_Barrier(node));
            return;
        case ALLREDUCE:
            OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, node));
            return;
        case SCAN:
            OK(MPI_Scan(&one, &sum, 1, MPI_INT, MPI_SUM, node));
            return;
        case DUP:
            OK(MPI_Comm_dup(node, &made));
            break;
        case SPLIT:
            OK(MPI_Comm_split(node, 0, rank, &made));
            break;
        case GROUP:
            OK(MPI_Comm_group(node, &group));
            OK(MPI_Comm_create_group(node, group, 3, &made));
            OK(MPI_Group_free(&group));
            break;
        case FENCE:
            OK(MPI_Win_fence(0, window));
            return;
        case FOUR_BARRIER:
            OK(MPI_Barrier(four));
            return;
        case FOUR_ALLGATHER:
            OK(MPI_Allgather(mine, BLOCK, MPI_BYTE, all, BLOCK, MPI_BYTE, four));
            return;
        case FOUR_ALLREDUCE:
            OK(MPI_Allreduce(mine, all, BLOCK, MPI_BYTE, MPI_BOR, four));
            return;
        default:
            OK(MPI_Iallgather(mine, BLOCK, MPI_BYTE, all, BLOCK, MPI_BYTE, four, &request));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            return;
    }
    OK(MPI_Comm_free(&made));
}

/* The first two ranks of my node and of the node that is its opposite; 0 when this rank takes no part. */
static int find_four(int mine[2], int theirs[2]) {
    int found[2][2] = {{-1, -1}, {-1, -1}}, count[2] = {0, 0};
    for (int other = 0; other < size; ++other) {
        int n = node_of[other];
        if (n < 2 && count[n] < 2) found[n][count[n]++] = other;
    }
    int n = node_of[rank];
    if (n > 1 || count[0] < 2 || count[1] < 2) return 0;
    memcpy(mine, found[n], sizeof found[n]), memcpy(theirs, found[1 - n], sizeof found[n]);
    return 1;
}

void rule_inside_node(void) {
    int mine[2], theirs[2], takes_part = find_four(mine, theirs), *memory_of_window;
    unsigned char* buffer = memory(BIG);
    int is_one = takes_part && (rank == mine[0] || rank == mine[1]);
    OK(MPI_Comm_split(MPI_COMM_WORLD, node_of[rank], rank, &node));
    OK(MPI_Comm_split(MPI_COMM_WORLD, is_one ? 0 : MPI_UNDEFINED, rank, &four));
    OK(MPI_Win_allocate_shared(64, 1, MPI_INFO_NULL, node, &memory_of_window, &window));
    OK(MPI_Win_fence(0, window));
    for (int way = 0; takes_part && way < WAYS; ++way) {
        if (way == FENCE && size > 4) continue; /* needs all of the node */
        MPI_Request request = MPI_REQUEST_NULL;
        int sends = node_of[rank] == 0 ? rank == mine[0] : rank == mine[1];
        int peer = rank == mine[0] ? theirs[0] : theirs[1];
        if (!is_one) {
            if (way < FIRST_OF_FOUR) join(way);
            continue;
        }
        if (sends) {
            fill(buffer, BIG, (uint64_t)(rank + way));
            OK(MPI_Isend(buffer, BIG, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &request));
        } else {
            OK(MPI_Recv(buffer, BIG, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            CHECK_FILLED(buffer, BIG, (uint64_t)(peer + way));
        }
        join(way);
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    OK(MPI_Win_free(&window));
    OK(MPI_Comm_free(&node));
    if (four != MPI_COMM_NULL) OK(MPI_Comm_free(&four));
    free(buffer);
}
