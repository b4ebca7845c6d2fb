/* Persistent collectives, and some that are made long after them, which the ranks start in different orders. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { KEPT = 4, OLD = 2, BETWEEN = 16381, COUNT = 200000 };

static int* values[KEPT];
static MPI_Request requests[KEPT];

static void make(int which) {
    values[which] = malloc(COUNT * sizeof *values[which]);
    MPI_Bcast_init(values[which], COUNT, MPI_INT, which % 2, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[which]);
}

int main(int argc, char** argv) {
    int rank, one = 0, right = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int which = 0; which < OLD; ++which) make(which);
    for (int i = 0; i < BETWEEN; ++i) {
        MPI_Request short_lived;
        MPI_Bcast_init(&one, 1, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &short_lived);
        MPI_Request_free(&short_lived);
    }
    for (int which = OLD; which < KEPT; ++which) make(which);

    for (int which = 0; which < KEPT; ++which)
        for (int i = 0; i < COUNT; ++i) values[which][i] = rank == which % 2 ? which + i : -1;
    for (int turn = 0; turn < KEPT; ++turn) MPI_Start(&requests[rank == 0 ? turn : KEPT - 1 - turn]);
    MPI_Waitall(KEPT, requests, MPI_STATUSES_IGNORE);
    for (int which = 0; which < KEPT; ++which) {
        for (int i = 0; i < COUNT; ++i) right = right && values[which][i] == which + i;
        MPI_Request_free(&requests[which]);
        free(values[which]);
    }
    printf("rank %d: %s\n", rank, right ? "right" : "WRONG");
    MPI_Finalize();
    return 0;
}
