// The MPI library's arithmetic on this process's memory.
#pragma once

#include <mpi.h>

namespace mpisec::shim {

/// Whether this works: false only without MPI_Init on an Open MPI that hides the function that its MPI_Reduce_local calls.
bool can_reduce_locally();

/// inout[i] becomes in[i] op inout[i], for `count` elements, by MPI_Reduce_local. Returns an MPI error code.
int reduce_locally(const void* in, void* inout, int count, MPI_Datatype type, MPI_Op op);

}  // namespace mpisec::shim
