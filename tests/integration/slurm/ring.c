/* Every rank sends a marker that only it makes up to the next one, `rounds` times; rank 0 says how many arrived right on all ranks, and on how
   many nodes. With `slow` each round takes a tenth of a second. The marker is MARKER with each byte one higher: no launcher carries it. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char** argv) {
    const char* marker = argc > 1 ? argv[1] : "MARKER";
    int rounds = argc > 2 ? atoi(argv[2]) : 100, slow = argc > 3;
    int rank, size, right = 0, all = 0, length = (int)strlen(marker);
    char text[64] = "", got[64] = "";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < length; i++) text[i] = (char)(marker[i] + 1);
    if (slow && rank == 0) printf("started\n"), fflush(stdout);
    for (int i = 0; i < rounds; i++) {
        if (slow) usleep(100000);
        MPI_Sendrecv(text, length, MPI_CHAR, (rank + 1) % size, 7, got, length, MPI_CHAR,
                     (rank + size - 1) % size, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        right += memcmp(got, text, (size_t)length) == 0;
        memset(got, 0, sizeof got);
    }
    MPI_Reduce(&right, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Comm node;
    int first, nodes;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &first);
    first = first == 0;
    MPI_Allreduce(&first, &nodes, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Comm_free(&node);
    if (rank == 0) printf("right %d of %d, ranks %d, nodes %d\n", all, rounds * size, size, nodes);
    MPI_Barrier(MPI_COMM_WORLD);
    usleep(20000); /* MPICH 4.0 may hang in MPI_Finalize else (docs/lab.md) */
    MPI_Finalize();
    return 0;
}
