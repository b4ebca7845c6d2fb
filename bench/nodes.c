/* Prints on how many nodes the job's ranks are, as a line of JSON: {"nodes": N}. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
    MPI_Comm node;
    int rank, first, nodes;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &first);
    first = first == 0;
    MPI_Reduce(&first, &nodes, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("{\"nodes\": %d}\n", nodes);
    MPI_Comm_free(&node);
    MPI_Finalize();
    return 0;
}
