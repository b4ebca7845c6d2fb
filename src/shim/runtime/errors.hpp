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

/// Calls the error handler (MPI standard section 9.3) and returns `code`. Success passes through. A fatal
/// handler ends the job, not only the processes of the communicator: the others may wait in MPI_Finalize for
/// them.
int raise_on(MPI_Comm comm, int code);
int raise_on_window(MPI_Win win, int code);
int raise_on_file(MPI_File file, int code);
/// Whether the communicator's error handler is MPI_ERRORS_ARE_FATAL, and what it does. The MPI library's own
/// would name MPI_Comm_call_errhandler as the call that failed, and may end this process only.
bool is_fatal(MPI_Comm comm);
[[noreturn]] void end_fatally(int code);
/// What a launcher may take for it. A rank for which another one says why waits so long to be ended.
constexpr unsigned seconds_to_end_a_job = 3;

int raise_error(const Communicator* comm, int code);
/// The same for a communicator that MPIsec knows, or null.
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
