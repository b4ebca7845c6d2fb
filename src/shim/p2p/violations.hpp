// Errors of MPIsec's own class, and raising errors through a communicator's handler (S2, S8).
#pragma once

#include <mpi.h>

#include <cstddef>

#include "shim/runtime/errors.hpp"

namespace mpisec::shim {

struct Communicator;

/// Why a message was not accepted.
enum class Violation { forged, replayed, reordered, malformed, construction, reported };

/// Makes MPIsec's error class and codes known to MPI; after the real MPI_Init.
void register_errors();

/// Says on standard error which message from which peer was not accepted and returns the MPI error code for
/// it. The caller raises it.
int report_violation(Violation violation, const Communicator& comm, int source, int tag, const char* detail);

/// The same for a sealed block of a collective, which world rank `sealer` had sealed.
int report_sealed_block_violation(const char* procedure, int sealer);
/// The same for a message of a collective that is not as long as this rank expects, `bytes`.
int report_length_violation(const char* procedure, std::size_t bytes);

/// The same for a communicator that is not what `procedure` was called for.
int report_wrong_communicator(const char* procedure, const char* difference);

int raise_error(const Communicator* comm, int code, const char* call);
/// raise_on() for a communicator that MPIsec knows, or null.
inline int raise(const Communicator* comm, int code, const char* call = "") {
    return code == MPI_SUCCESS ? code : raise_error(comm, code, call);
}
/// The communicator whose handler `raise` would call.
MPI_Comm handler_owner(const Communicator* comm);

}  // namespace mpisec::shim
