#include "shim/runtime/errors.hpp"

#include <unistd.h>

#include <array>
#include <cstdlib>

#include "shim/p2p/communicator.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/runtime/gate.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/runtime/state.hpp"

namespace mpisec::shim {
namespace {

struct ViolationText {
    const char* error_string;
};
constexpr std::array<ViolationText, 5> texts = {{
    {"MPIsec integrity error: a message does not authenticate (changed, forged or sealed under another key)"},
    {"MPIsec integrity error: a message was received before (replayed)"},
    {"MPIsec integrity error: messages were swapped on the way (overtaking)"},
    {"MPIsec integrity error: a message is not in MPIsec's format (plaintext, cut or extended)"},
    {"MPIsec integrity error: the MPI library made another communicator than was called for (its messages "
     "were "
     "changed)"},
}};
std::array<int, texts.size()> codes{};

}  // namespace

void register_errors() {
    int error_class = 0;
    real.Add_error_class(&error_class);
    real.Add_error_string(error_class, "MPIsec integrity error");
    for (std::size_t i = 0; i < texts.size(); ++i) {
        real.Add_error_code(error_class, &codes[i]);
        real.Add_error_string(codes[i], texts[i].error_string);
    }
}

int report_violation(Violation violation, const Communicator& comm, int source, int tag, const char* detail) {
    const auto kind = static_cast<std::size_t>(violation);
    std::string sentence = texts[kind].error_string;
    sentence += "; from rank " + std::to_string(source);
    if (source >= 0 && source < static_cast<int>(comm.peers.size()))
        sentence += " (world rank " + std::to_string(comm.peers[source].world) + ")";
    sentence += ", tag " + std::to_string(tag);
    if (detail) sentence += std::string(", ") + detail;
    say(sentence + ". Nothing of it was delivered.");
    return codes[kind];
}

int report_box_violation(const char* procedure, int sealer) {
    const auto kind = static_cast<std::size_t>(Violation::forged);
    say(std::string(texts[kind].error_string) + "; in " + procedure + ", data of world rank " +
        std::to_string(sealer) + ". Nothing of it was delivered.");
    return codes[kind];
}

int report_length_violation(const char* procedure, std::size_t bytes) {
    const auto kind = static_cast<std::size_t>(Violation::malformed);
    say(std::string(texts[kind].error_string) + "; in " + procedure + ": it has not the " +
        std::to_string(bytes) +
        " bytes that were expected. Or the ranks called with different counts. Nothing of it was delivered.");
    return codes[kind];
}

int report_wrong_communicator(const char* procedure, const char* difference) {
    const auto kind = static_cast<std::size_t>(Violation::construction);
    say(std::string(texts[kind].error_string) + "; in " + procedure + ": " + difference +
        ". Or the ranks called with different arguments. It was not handed out.");
    return codes[kind];
}

MPI_Comm handler_owner(const Communicator* comm) {
    return comm && !comm->freed ? comm->handle : constants.comm_self;
}

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

void end_fatally(int code) {
    char text[MPI_MAX_ERROR_STRING + 1] = "";
    int length = 0, error_class = 0;
    real.Error_string(code, text, &length);
    real.Error_class(code, &error_class);
    say(std::string(text) + ". The job ends, because the error handler is MPI_ERRORS_ARE_FATAL.");
    usleep(200'000);  // launchers drop what a rank wrote just before the job is killed
    const int status = error_class & 0xff;
    real.Abort(constants.comm_world, status ? status : 1);
    _exit(1);
}

int raise_on(MPI_Comm comm, int code) {
    if (code == MPI_SUCCESS) return code;
    if (is_fatal(comm)) end_fatally(code);
    real.Comm_call_errhandler(comm, code);
    return code;
}

int raise_on_window(MPI_Win win, int code) {
    if (code == MPI_SUCCESS) return code;
    MPI_Errhandler handler;
    const int got = real.Win_get_errhandler(win, &handler);
    if (is_fatal(got, handler)) end_fatally(code);
    real.Win_call_errhandler(win, code);
    return code;
}

int raise_on_file(MPI_File file, int code) {
    if (code == MPI_SUCCESS) return code;
    MPI_Errhandler handler;
    const int got = real.File_get_errhandler(file, &handler);
    if (is_fatal(got, handler)) end_fatally(code);
    real.File_call_errhandler(file, code);
    return code;
}

int raise_error(const Communicator* comm, int code) {
    return raise_on(handler_owner(comm), code);
}

void say(const std::string& sentence) {
    char host[256] = "?";
    gethostname(host, sizeof host - 1);
    std::string line =
        "mpisec: rank " + std::to_string(state.world.rank) + " (" + host + "): " + sentence + "\n";
    [[maybe_unused]] ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

void abort_job(const std::string& sentence) {
    if (in_child()) end_child("MPI");  // the job, and the connections that would end it, are the parent's
    say(sentence);
    usleep(200'000);  // launchers drop what a rank wrote just before the job is killed
    if (real.Abort) real.Abort(constants.comm_world, 1);
    _exit(1);
}

}  // namespace mpisec::shim
