// The MPI library's arithmetic on this process's memory.
#pragma once

#include <mpi.h>

namespace mpisec::shim {

/// Whether the library has it: false only for an Open MPI, without MPI_Init, that hides what its MPI_Reduce_local goes through.
bool can_reduce_locally();

/// inout[i] becomes in[i] op inout[i], for `count` elements, by MPI_Reduce_local. Returns an MPI error code.
int reduce_locally(const void* in, void* inout, int count, MPI_Datatype type, MPI_Op op);

}  // namespace mpisec::shim
