// Errors that MPIsec raises through a communicator's error handler (S2, S8).
#pragma once

#include <mpi.h>

#include <cstddef>
#include <string>

namespace mpisec::shim {

struct Communicator;

/// Why a message was not accepted.
enum class Violation { forged, replayed, reordered, malformed, construction };

/// Makes MPIsec's error class and codes known to MPI; after the real MPI_Init.
void register_errors();

/// Says on standard error which message from which peer was not accepted and returns the MPI error code for
/// it. The caller raises it.
int report_violation(Violation violation, const Communicator& comm, int source, int tag, const char* detail);

/// The same for a box of a collective, which world rank `sealer` had sealed.
int report_box_violation(const char* procedure, int sealer);
/// The same for a message of a collective that is not as long as this rank expects, `bytes`.
int report_length_violation(const char* procedure, std::size_t bytes);

/// The same for a communicator that is not what `procedure` was called for.
int report_wrong_communicator(const char* procedure, const char* difference);

int raise_on(MPI_Comm comm, int code);
int raise_error(const Communicator* comm, int code);
/// Calls the communicator's error handler (MPI standard section 9.3) and returns `code`. Success passes
/// through.
inline int raise(const Communicator* comm, int code) {
    return code == MPI_SUCCESS ? code : raise_error(comm, code);
}
/// The communicator whose handler `raise` would call.
MPI_Comm handler_owner(const Communicator* comm);

/// "mpisec: rank 3 (host): SENTENCE" on standard error, in one write.
void say(const std::string& sentence);

/// Says the sentence and ends the job.
[[noreturn]] void abort_job(const std::string& sentence);

}  // namespace mpisec::shim
