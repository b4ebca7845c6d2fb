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
    std::vector<ColorAndKey> parts;  ///< of each rank; between two groups in that of the collective context
    bool finer = false;  ///< each part, which is inside a node then, is for the MPI library to divide further
};

/// Gathers under seal what the ranks ask for, and decides on every rank the same. Returns an error code that
/// was raised.
int divide_by_type(Communicator& parent, int type, int key, MPI_Info info, TypeDivision& division);

}  // namespace mpisec::shim
