// Operations of the program on packed elements: MPI_Reduce_local does the arithmetic, with the operation and
// the datatype that the program named (MPI standard section 6.9).
#pragma once

#include <mpi.h>

#include <memory>

#include "fabric/fabric.hpp"
#include "shim/datatype.hpp"

namespace mpisec::shim {

/// Null when MPI does not know the operation. Keeps both handles good until it is destroyed.
std::unique_ptr<fabric::Reduction> make_reduction(MPI_Datatype type, const TypeFacts& facts, MPI_Op op);

}  // namespace mpisec::shim
