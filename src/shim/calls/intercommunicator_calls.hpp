// Constructors that divide an inter-communicator, for communicator_calls.cpp.
#pragma once

#include <mpi.h>

#include <vector>

#include "shim/communicators/split_type.hpp"
#include "shim/p2p/communicator.hpp"

namespace mpisec::shim {

/// Divides an inter-communicator that crosses nodes by what is known of the ranks of both groups, which are in the order of the collective
/// context.
int split_inter_by(Communicator& parent, const char* procedure, const std::vector<ColorAndKey>& all,
                   MPI_Comm* newcomm);
/// MPI_Comm_split of an inter-communicator: each group learns the other's colours.
int split_inter_sealed(Communicator& parent, const char* procedure, int color, int key, MPI_Comm* newcomm);
/// MPI_Comm_create of an inter-communicator: each group learns which ranks the other chose.
int create_inter_sealed(Communicator& parent, const char* procedure, MPI_Group group, MPI_Comm* newcomm);

}  // namespace mpisec::shim
