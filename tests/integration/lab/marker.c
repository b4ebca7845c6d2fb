/* Rank 0 sends a long message full of a marker to the last rank, which says how many bytes arrived right. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char** argv) {
    const char* marker = argc > 1 ? argv[1] : "MARKER";
    int length = (int)strlen(marker), repeats = argc > 2 ? atoi(argv[2]) : 1000, rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    char* buffer = calloc(repeats, length);
    if (rank == 0) {
        for (int i = 0; i < repeats; i++) memcpy(buffer + i * length, marker, length);
        MPI_Send(buffer, repeats * length, MPI_CHAR, size - 1, 7, MPI_COMM_WORLD);
    } else if (rank == size - 1) {
        MPI_Recv(buffer, repeats * length, MPI_CHAR, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        int right = 0;
        for (int i = 0; i < repeats; i++) right += memcmp(buffer + i * length, marker, length) == 0;
        printf("right %d of %d\n", right, repeats);
    }
    free(buffer);
    MPI_Finalize();
    return 0;
}
