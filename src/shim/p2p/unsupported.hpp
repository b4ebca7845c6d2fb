// Refusals (S1): a call whose values would leave the node in clear ends in an MPI error that names it. Where every rank concerned is on
// this node, the generated wrapper calls the real procedure instead.
#pragma once

#include <mpi.h>

#include <string>

namespace mpisec::shim {

/// Reports through the communicator's error handler and returns the error code. MPI_COMM_NULL: no communicator is at hand, so
/// MPI_COMM_SELF's handler is used.
int refuse(const char* procedure, MPI_Comm comm);
/// Returns the error code without calling an error handler; with a detail, also reports the refusal (once).
int refusal_code(const char* procedure);
int refusal_code(const char* procedure, const std::string& detail);
/// Refuses because a buffer of the call is in a GPU's memory, which this procedure does not take (docs/gpu.md).
[[gnu::cold, gnu::noinline]] int refuse_device(const char* procedure, MPI_Comm comm);
/// MPISEC_UNPROTECTED=allow: says so loudly, once per procedure.
bool refusal_waived(const char* procedure);

}  // namespace mpisec::shim
