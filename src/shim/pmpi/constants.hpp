// MPI's handle constants, looked up where they are data symbols (Open MPI), so that the shim loads into any
// program.
#pragma once

#include <mpi.h>

#include "shim/process/process.hpp"

namespace mpisec::shim {

inline constexpr Constants& constants = process.constants;

/// Whether MPI defines the operation, and whether it is MPICH's MPIX_EQUAL.
bool is_predefined(MPI_Op op);
bool is_equality(MPI_Op op);

/// Called by resolve_real(). Aborts with a sentence when one is missing.
void resolve_constants();

}  // namespace mpisec::shim
