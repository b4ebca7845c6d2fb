#include "shim/runtime/errors.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdlib>

#include "base/error_line.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/family.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/runtime/gate.hpp"
#include "shim/runtime/handlers.hpp"
#include "shim/runtime/state.hpp"

namespace mpisec::shim {
namespace {

constexpr useconds_t launcher_passes_output_on = 200'000;

#ifdef OPEN_MPI
// The launcher of Open MPI 5 (prterun) sometimes hangs when ranks of two nodes call MPI_Abort at the same time, even without MPIsec, and
// never when only one rank does.
constexpr useconds_t between_aborts = 300'000;
#else
constexpr useconds_t between_aborts = 0;
#endif
constexpr std::int32_t longest_queue = 8;  // ranks; the others call MPI_Abort together

/// Whether the handler that a call with the result `got` returned is MPI_ERRORS_ARE_FATAL.
bool is_fatal(int got, MPI_Errhandler handler) {
    if (got != MPI_SUCCESS) return false;
    give_back_handler(handler);
    return handler == constants.errors_are_fatal;
}

}  // namespace

void give_back_handler(MPI_Errhandler handler) {
    if (handler != constants.errors_return && handler != constants.errors_are_fatal)
        real.Errhandler_free(&handler);
}

void inherit_error_handler(MPI_Comm parent, MPI_Comm made) {
    MPI_Errhandler handler;
    if (real.Comm_get_errhandler(parent, &handler) != MPI_SUCCESS) return;
    real.Comm_set_errhandler(made, handler);
    give_back_handler(handler);
}

ErrorsReturned::ErrorsReturned(MPI_Comm comm)
    : comm_(comm), known_(real.Comm_get_errhandler(comm, &before_) == MPI_SUCCESS) {
    real.Comm_set_errhandler(comm_, constants.errors_return);
}

ErrorsReturned::~ErrorsReturned() {
    if (!known_) return;
    real.Comm_set_errhandler(comm_, before_);
    give_back_handler(before_);
}

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
    wait_before_abort();
    const int status = error_class & 0xff;
    real.Abort(constants.comm_world, status ? status : 1);
    _exit(1);
}

int raise_on(MPI_Comm comm, int code, const char* call) {
    if (code == MPI_SUCCESS) return code;
    // Nobody's error: of a window that was freed, or without a world before the first communicator of a session.
    if (comm == constants.comm_null || comm == MPI_Comm{}) return code;
    if (is_fatal(comm)) end_fatally(code, call);
    raise_by(code, [&] { real.Comm_call_errhandler(comm, code); });
    return code;
}

int raise_on_window(MPI_Win win, int code, const char* call) {
    if (code == MPI_SUCCESS) return code;
    MPI_Errhandler handler;
    const int got = real.Win_get_errhandler(win, &handler);
    if (is_fatal(got, handler)) end_fatally(code, call);
    raise_by(code, [&] { real.Win_call_errhandler(win, code); });
    return code;
}

int raise_on_file(MPI_File file, int code, const char* call) {
    if (code == MPI_SUCCESS) return code;
    MPI_Errhandler handler;
    const int got = real.File_get_errhandler(file, &handler);
    if (is_fatal(got, handler)) end_fatally(code, call);
    // Open MPI takes MPI_FILE_NULL, to which the errors of opening go, for an error of this call: then no handler of the program's is called.
    if (!(is_open_mpi && file == constants.file_null))
        raise_by(code, [&] { real.File_call_errhandler(file, code); });
    return code;
}

void say(const std::string& sentence) {
    char host[256] = "?";
    gethostname(host, sizeof host - 1);
    write_error_line("mpisec: rank " + std::to_string(state.world.rank) + " (" + host + "): " + sentence);
}

void wait_before_abort() {
    const auto before = static_cast<useconds_t>(std::clamp(state.world.rank, 0, longest_queue));
    usleep(launcher_passes_output_on + before * between_aborts);
}

void abort_job(const std::string& sentence) {
    if (in_child()) end_child("MPI");  // the job, and the connections that would end it, are the parent's
    say(sentence);
    wait_before_abort();
    // In MPI_Finalize there is no MPI_COMM_WORLD any more, and launchers wait for ranks that exit then.
    if (gate.phase == Phase::ended) {
        const rlimit no_core{0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        signal(SIGABRT, SIG_DFL);
        std::abort();
    }
    if (real.Abort) real.Abort(constants.comm_world, 1);
    _exit(1);
}

}  // namespace mpisec::shim
