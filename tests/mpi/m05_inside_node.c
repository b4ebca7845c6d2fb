/* M5 inside a node: while a rank waits in what its node does together, its large message to another node must
 * get through, because others of the node wait for such a message before they join in. The first two ranks of
 * two nodes, crosswise:
 *
 *     node A: a0 starts a send to b0, then joins      a1 receives from b1, then joins
 *     node B: b1 starts a send to a1, then joins      b0 receives from a0, then joins */
#include "harness.h"
#include "rules.h"

enum { BIG = 4 << 20, TAG = 70 };
enum { BARRIER, ALLREDUCE, SCAN, DUP, SPLIT, GROUP, FENCE, WAYS };

static MPI_Comm node;
static MPI_Win window;

static void join(int way) {
    int one = 1, sum = 0;
    MPI_Comm made = MPI_COMM_NULL;
    MPI_Group group;
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
        default:
            OK(MPI_Win_fence(0, window));
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

void m05_inside_node(void) {
    int mine[2], theirs[2], takes_part = find_four(mine, theirs), *memory_of_window;
    unsigned char* buffer = memory(BIG);
    OK(MPI_Comm_split(MPI_COMM_WORLD, node_of[rank], rank, &node));
    OK(MPI_Win_allocate_shared(64, 1, MPI_INFO_NULL, node, &memory_of_window, &window));
    OK(MPI_Win_fence(0, window));
    for (int way = 0; takes_part && way < WAYS; ++way) {
        if (way == FENCE && size > 4) continue; /* needs all of the node */
        MPI_Request request = MPI_REQUEST_NULL;
        int sends = node_of[rank] == 0 ? rank == mine[0] : rank == mine[1];
        int peer = rank == mine[0] ? theirs[0] : theirs[1];
        if (rank != mine[0] && rank != mine[1]) {
            join(way);
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
    free(buffer);
}
