/* Two ranks only send, two only receive, in different orders: whoever has sent little may not wait for one that has received little
 * from somebody else. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 12 << 20 };

int main(int argc, char** argv) {
    static const int destinations[2][2] = {{2, 3}, {3, 2}}, sources[2][2] = {{1, 0}, {0, 1}};
    int rank, right = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const int sends = rank < 2;
    MPI_Comm graph;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, sends ? 0 : 2, sources[rank % 2], MPI_UNWEIGHTED,
                                   sends ? 2 : 0, destinations[rank % 2], MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                   &graph);
    char *out = malloc(2 * BYTES), *in = malloc(2 * BYTES);
    for (int i = 0; sends && i < 2; ++i)
        memset(out + i * BYTES, 10 * rank + destinations[rank % 2][i], BYTES);
    MPI_Neighbor_alltoall(out, BYTES, MPI_CHAR, in, BYTES, MPI_CHAR, graph);
    for (int i = 0; !sends && i < 2; ++i)
        for (int k = 0; k < BYTES; ++k)
            right = right && in[i * BYTES + k] == 10 * sources[rank % 2][i] + rank;
    printf("rank %d: %s\n", rank, right ? "right" : "WRONG");
    free(out);
    free(in);
    MPI_Comm_free(&graph);
    MPI_Finalize();
    return 0;
}
