// What MPI_Comm_split_type makes of a communicator that crosses nodes.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "shim/p2p/communicator.hpp"

namespace mpisec::shim {

struct ColorAndKey {
    std::int32_t color;
    std::int32_t key;
};

struct TypeDivision {
    std::vector<ColorAndKey> parts;  ///< by rank; of an inter-communicator, by rank in its collective context
    bool finer = false;  ///< each part is inside a node, and the MPI library must divide it further
};

/// Gathers under seal what the ranks ask for, and decides the same on every rank. Returns an error code that
/// was not raised.
int divide_by_type(Communicator& parent, int type, int key, MPI_Info info, TypeDivision& division);

}  // namespace mpisec::shim
