/* Says how large its world is: a process that its launcher did not start alone must not get here. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
    int size;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    printf("world of %d\n", size);
    MPI_Finalize();
    return 0;
}
