// What MPI_Dist_graph_create and MPI_Dist_graph_create_adjacent share.
#pragma once

#include <mpi.h>

namespace mpisec::shim {

/// This rank's ends of the edges of a distributed graph.
struct Neighbours {
    int in;
    const int *sources, *source_weights;
    int out;
    const int *destinations, *dest_weights;
    bool exchanged;  ///< by MPIsec: the program called MPI_Dist_graph_create
};

/// Makes the communicator with these edges.
int make_dist_graph(const char* procedure, MPI_Comm comm, const Neighbours& ends, MPI_Info info,
                    MPI_Comm* newcomm);

}  // namespace mpisec::shim
