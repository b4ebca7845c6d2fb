// Constructors that divide an inter-communicator, for communicator_calls.cpp.
#pragma once

#include <mpi.h>

#include "shim/p2p/communicator.hpp"

namespace mpisec::shim {

/// MPI_Comm_split of an inter-communicator that crosses nodes: each group learns the other's colours.
int split_inter_sealed(Communicator& parent, const char* procedure, int color, int key, MPI_Comm* newcomm);
/// MPI_Comm_create: each group learns whom the other chose.
int create_inter_sealed(Communicator& parent, const char* procedure, MPI_Group group, MPI_Comm* newcomm);

}  // namespace mpisec::shim
