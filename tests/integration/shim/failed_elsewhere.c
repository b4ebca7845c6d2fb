/* A broadcast that the root's neighbour fails in, while the next rank is eight seconds late for it, and the last one, its
   neighbour on the other node, waits for that. Usage: failed_elsewhere ROOT, 0 or 2; 4 ranks on 2 nodes. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char data[1 << 20];
static MPI_Comm comm;

static int broadcast(int root, int bytes) {
    return MPI_Bcast(data, bytes, MPI_BYTE, root, comm);
}

static void tell(int to) {
    if (to == 0) MPI_Send(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
}

/* Rank 0 is in MPI meanwhile: in the completion of two receives. */
static void wait_for(int one, int other) {
    MPI_Request requests[2];
    MPI_Irecv(NULL, 0, MPI_BYTE, one, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(NULL, 0, MPI_BYTE, other, 0, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

int main(int argc, char** argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    const int root = atoi(argv[1]), late = (root + 2) % 4;
    const double start = MPI_Wtime();
    if (rank == root) {
        broadcast(root, 4);
        if (root == 0)
            wait_for(1, 2);
        else {
            sleep(8);
            tell(late);
        }
    } else if (rank == late) {
        if (root == 0) {
            sleep(8);
            tell(root);
        } else
            wait_for(root, root + 1);
        broadcast(root, 4);
    } else if (rank == root + 1) {
        printf("the rank that fails: %s\n", broadcast(root, sizeof data) ? "error" : "success");
        if (root == 0) sleep(8);
        tell(0);
    } else {
        const int code = broadcast(root, 4);
        printf("the rank that waits: %s %s\n", code ? "error" : "success",
               MPI_Wtime() - start < 6 ? "in time" : "late");
    }
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return 0;
}
