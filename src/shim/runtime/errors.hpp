// Raising errors through the program's error handlers, and what MPIsec says on standard error.
#pragma once

#include <mpi.h>

#include <string>

namespace mpisec::shim {

/// Calls the error handler (MPI standard section 9.3) and returns `code`, whatever the handler makes of it (handlers.hpp). Success passes
/// through. A fatal handler ends the job, not only the processes of the communicator: the others may wait for them in MPI_Finalize. `call`:
/// the procedure that failed, for the sentence that is then printed.
int raise_on(MPI_Comm comm, int code, const char* call = "");
int raise_on_window(MPI_Win win, int code, const char* call = "");
int raise_on_file(MPI_File file, int code, const char* call = "");
/// Whether the communicator's error handler is MPI_ERRORS_ARE_FATAL, and what that handler does. The MPI library's own would name
/// MPI_Comm_call_errhandler as the call that failed, and may end this process only.
bool is_fatal(MPI_Comm comm);
[[noreturn]] void end_fatally(int code, const char* call = "");
/// How long a launcher may take to end a job. A rank whose error another rank explains waits this long to be ended.
constexpr unsigned seconds_to_end_a_job = 3;

/// Frees the reference that MPI_Comm_get_errhandler and the like gave, if the handler is the program's.
void give_back_handler(MPI_Errhandler handler);
/// A new communicator has the error handler of the one that it is made from (MPI standard section 9.3). MPIsec makes some in ways in which the
/// library does not see to that.
void inherit_error_handler(MPI_Comm parent, MPI_Comm made);

/// While it lives, the library returns errors on the communicator, and MPIsec raises them.
class ErrorsReturned {
  public:
    explicit ErrorsReturned(MPI_Comm comm);
    ~ErrorsReturned();
    ErrorsReturned(const ErrorsReturned&) = delete;
    ErrorsReturned& operator=(const ErrorsReturned&) = delete;

  private:
    MPI_Comm comm_;
    MPI_Errhandler before_;
    bool known_;
};

/// "mpisec: rank 3 (host): SENTENCE" on standard error, in one write.
void say(const std::string& sentence);

/// Waits after say() until the launcher has passed the sentence on: it drops what a rank wrote just before the
/// job is killed. With Open MPI the ranks also wait for each other, so that the lowest of them ends the job.
void wait_before_abort();

/// Says the sentence and ends the job.
[[noreturn]] void abort_job(const std::string& sentence);

}  // namespace mpisec::shim
