/* Each rank sends every other one a long message full of a marker; rank 0 says how many bytes arrived right, and how many ranks share its node. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char** argv) {
    const char* marker = argv[1];
    int length = (int)strlen(marker), repeats = atoi(argv[2]), bytes = repeats * length, rank, size, sharing,
        right = 0, all;
    MPI_Comm node;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &sharing);
    char *out = malloc(bytes), *in = malloc(bytes);
    for (int i = 0; i < repeats; i++) memcpy(out + i * length, marker, length);
    for (int step = 1; step < size; step++) {
        memset(in, 0, bytes);
        MPI_Sendrecv(out, bytes, MPI_CHAR, (rank + step) % size, 7, in, bytes, MPI_CHAR,
                     (rank + size - step) % size, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        right += memcmp(in, out, bytes) == 0;
    }
    MPI_Reduce(&right, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("right %d of %d, %d on a node\n", all, size * (size - 1), sharing);
    MPI_Comm_free(&node);
    MPI_Finalize();
    return 0;
}
