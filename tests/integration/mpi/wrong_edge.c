/* One rank names an edge to a rank that does not exist: each says which class of error it got, and that what follows works. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
    int rank, size, degree = 1, class = MPI_SUCCESS;
    MPI_Comm graph, good;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    const int next = (rank + 1) % size, end = rank == 1 ? size : next;
    const int code = MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, &degree, &end, MPI_UNWEIGHTED,
                                           MPI_INFO_NULL, 0, &graph);
    MPI_Error_class(code, &class);
    const int is_right = class == MPI_ERR_RANK && graph == MPI_COMM_NULL;
    MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, &degree, &next, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &good);
    int came = -1;
    MPI_Neighbor_allgather(&rank, 1, MPI_INT, &came, 1, MPI_INT, good);
    printf("rank %d: %s, %s\n", rank,
           is_right              ? "MPI_ERR_RANK"
           : code == MPI_SUCCESS ? "NO ERROR"
                                 : "ANOTHER ERROR",
           came == (rank + size - 1) % size ? "then right" : "then WRONG");
    MPI_Comm_free(&good);
    MPI_Finalize();
    return 0;
}
