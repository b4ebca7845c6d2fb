#include "shim/runtime/errors.hpp"

#include <unistd.h>

#include <cstdlib>

#include "base/error_line.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/runtime/gate.hpp"
#include "shim/runtime/state.hpp"

namespace mpisec::shim {
namespace {

/// Whether the handler that was asked for with `got` is MPI_ERRORS_ARE_FATAL.
bool is_fatal(int got, MPI_Errhandler handler) {
    if (got != MPI_SUCCESS) return false;
    if (handler == constants.errors_are_fatal) return true;
    if (handler != constants.errors_return) real.Errhandler_free(&handler);  // a reference to the program's
    return false;
}

}  // namespace

bool is_fatal(MPI_Comm comm) {
    MPI_Errhandler handler;
    const int got = real.Comm_get_errhandler(comm, &handler);
    return is_fatal(got, handler);
}

void end_fatally(int code, const char* call) {
    char text[MPI_MAX_ERROR_STRING + 1] = "";
    int length = 0, error_class = 0;
    real.Error_string(code, text, &length);
    real.Error_class(code, &error_class);
    say(std::string(call) + (*call ? ": " : "") + text +
        ". The job ends, because the error handler is MPI_ERRORS_ARE_FATAL.");
    usleep(200'000);  // launchers drop what a rank wrote just before the job is killed
    const int status = error_class & 0xff;
    real.Abort(constants.comm_world, status ? status : 1);
    _exit(1);
}

int raise_on(MPI_Comm comm, int code, const char* call) {
    if (code == MPI_SUCCESS) return code;
    if (is_fatal(comm)) end_fatally(code, call);
    real.Comm_call_errhandler(comm, code);
    return code;
}

int raise_on_window(MPI_Win win, int code, const char* call) {
    if (code == MPI_SUCCESS) return code;
    MPI_Errhandler handler;
    const int got = real.Win_get_errhandler(win, &handler);
    if (is_fatal(got, handler)) end_fatally(code, call);
    real.Win_call_errhandler(win, code);
    return code;
}

int raise_on_file(MPI_File file, int code, const char* call) {
    if (code == MPI_SUCCESS) return code;
    MPI_Errhandler handler;
    const int got = real.File_get_errhandler(file, &handler);
    if (is_fatal(got, handler)) end_fatally(code, call);
    real.File_call_errhandler(file, code);
    return code;
}

void say(const std::string& sentence) {
    char host[256] = "?";
    gethostname(host, sizeof host - 1);
    write_error_line("mpisec: rank " + std::to_string(state.world.rank) + " (" + host + "): " + sentence);
}

void abort_job(const std::string& sentence) {
    if (in_child()) end_child("MPI");  // the job, and the connections that would end it, are the parent's
    say(sentence);
    usleep(200'000);  // launchers drop what a rank wrote just before the job is killed
    if (real.Abort) real.Abort(constants.comm_world, 1);
    _exit(1);
}

}  // namespace mpisec::shim
