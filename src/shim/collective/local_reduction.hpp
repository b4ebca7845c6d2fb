// The MPI library's arithmetic on this process's memory: MPI_Reduce_local, and where that does not work, MPI_Accumulate.
#pragma once

#include <mpi.h>

namespace mpisec::shim {

/// Whether the library has it. Open MPI's MPI_Reduce_local needs MPI_COMM_SELF and crashes in a program that has not called
/// MPI_Init (seen on 5.0.11, without MPIsec); MPI_Accumulate, in its stead, takes MPI's own operations only.
bool can_reduce_locally(MPI_Op op);

/// inout[i] becomes in[i] op inout[i], for `count` elements. Returns an MPI error code.
int reduce_locally(const void* in, void* inout, int count, MPI_Datatype type, MPI_Op op);

/// Before the communicator of this process alone is freed.
void end_local_reductions();

}  // namespace mpisec::shim
