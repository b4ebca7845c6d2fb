#include "cli/exec.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/error_line.hpp"
#include "cli/detect.hpp"
#include "cli/launcher.hpp"
#include "cli/places.hpp"
#include "cli/preload.hpp"
#include "cli/say.hpp"
#include "cli/transports.hpp"
#include "config/settings.hpp"
#include "config/values.hpp"

namespace mpisec::cli {
namespace {

constexpr const char* help =
    "Runs an MPI program with its traffic between nodes sealed. It takes the program's place, under any "
    "launcher:\n\n"
    "  mpiexec -n 64 mpisec exec ./app input.dat\n"
    "  srun mpisec exec python3 solve.py\n"
    "  mpiexec -n 4 mpisec exec --mpi openmpi -- ./run.sh\n";

/// A launcher of another MPI family starts processes that do not find each other: each is rank 0 of 1, and
/// nothing is sent.
void warn_of_foreign_launcher(const std::string& family, const std::string& program) {
    const bool hydra = std::getenv("PMI_SIZE") != nullptr,
               prrte = std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr;
    const char* launcher = family == "openmpi" && hydra && !prrte   ? "MPICH's"
                           : family != "openmpi" && prrte && !hydra ? "Open MPI's"
                                                                    : nullptr;
    const char* size = std::getenv(hydra ? "PMI_SIZE" : "OMPI_COMM_WORLD_SIZE");
    const char* rank = std::getenv(hydra ? "PMI_RANK" : "OMPI_COMM_WORLD_RANK");
    if (!launcher || !size || std::getenv("SLURM_STEP_ID") || std::strcmp(size, "1") == 0 ||
        (rank && std::strcmp(rank, "0") != 0))
        return;
    write_error_line(
        "mpisec exec: warning: " + program + " uses " +
        (family == "openmpi" ? "Open MPI" : "an MPI of MPICH's family") + ", but " + launcher +
        " launcher started it: its processes may not find each other. Use the mpiexec of the program's own "
        "MPI (mpisec doctor -- " +
        program + ").");
}

/// Only one rank of the job warns, because all have the same program.
void warn_of_other_transports(const Program& program) {
    if (!may_be_rank_0()) return;
    for (const Transport& transport : transports_past_mpi(program, libraries_of(program)))
        write_error_line("mpisec exec: warning: " + sentence_about(transport) + ".");
}

/// `exec mpisec exec PROGRAM`: the second one preloads MPIsec.
bool is_exec_of_ours(const Program& program, const std::vector<std::string>& command) {
    return std::filesystem::path(program.executable).filename() == "mpisec" && command.size() > 1 &&
           command[1] == "exec";
}

/// For --help: what is behind the options is not CLI11's.
class UsageWithProgram : public CLI::Formatter {
    std::string make_usage(const CLI::App*, std::string) const override {
        return "Usage: mpisec exec [OPTIONS] [--] PROGRAM [ARGUMENTS...]\n";
    }
};

bool under_a_launcher() {
    const auto launcher = find_launcher();
    return !launcher || !launcher->name.empty();  // two are an error
}

/// MPISEC_MPI. Without a launcher a wrong setting, whichever it is, is reported here, before the program starts. Under a launcher the library
/// that is preloaded reports it in MPI_Init, and ends the job: if this process ended instead, others might wait for it (Hydra's do).
Result<std::string> family_by_setting() {
    auto settings = config::load();
    if (settings) return settings->mpi;
    if (!under_a_launcher()) return tl::unexpected(settings.error());
    const char* family = std::getenv("MPISEC_MPI");
    return std::string(family ? family : "");
}

/// Under a launcher it is not evident whose words these are.
void complain_of_node(const Error& error) {
    char host[256] = "?";
    gethostname(host, sizeof host - 1);
    complain(under_a_launcher() ? ("exec on " + std::string(host)).c_str() : "exec", error);
}

/// The value of LD_PRELOAD that protects `command`; empty where the command sees to that itself.
Result<std::string> preload_for_command(const std::vector<std::string>& command, const std::string& mpi) {
    auto family = family_by_setting();
    if (!family) return tl::unexpected(family.error());
    auto program = find_program(command);
    if (!program) return tl::unexpected(program.error());
    if (is_exec_of_ours(*program, command)) return std::string{};
    auto found = detect(*program, command, mpi, *family);
    if (!found) return tl::unexpected(found.error());
    auto preload = preload_of(*program, shim_path(found->family));
    if (!preload) return tl::unexpected(preload.error());

    warn_of_foreign_launcher(std::string(name(found->family)), command[0]);
    warn_of_other_transports(*program);
    return *preload;
}

Result<void> print_variables(const std::vector<std::string>& command, const std::string& mpi) {
    auto preload = preload_for_command(command, mpi);
    if (!preload) return tl::unexpected(preload.error());
    if (!preload->empty()) std::printf("LD_PRELOAD=%s\n", preload->c_str());
    return {};
}

/// The program may change its directory before MPI_Init.
void whole_paths() {
    for (const char* name : {"MPISEC_CONFIG", "MPISEC_KEY_FILE", "MPISEC_TUNING", "MPISEC_TRACE",
                             "MPISEC_CACHE_DIR", "MPISEC_PLUGIN_DIR"})
        if (const char* given = std::getenv(name))
            if (const auto whole = config::parse_path(given)) setenv(name, whole->c_str(), 1);
}

Result<void> replace_process(const std::vector<std::string>& command, const std::string& mpi) {
    auto preload = preload_for_command(command, mpi);
    if (!preload) return tl::unexpected(preload.error());
    if (!preload->empty()) setenv("LD_PRELOAD", preload->c_str(), 1);
    whole_paths();
    std::vector<char*> arguments;
    for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    return fail("cannot start " + command[0] + ": " + std::strerror(errno));
}

}  // namespace

int exec_command(int count, char** arguments) {
    CLI::App app{help, "mpisec exec"};
    std::string mpi;
    app.add_option("--mpi", mpi,
                   "MPI family of PROGRAM, where it cannot be detected: mpich (also Intel MPI), abi, openmpi")
        ->type_name("FAMILY");
    bool environment = false;
    app.add_flag(
        "--environment", environment,
        "Start nothing: print the variables that PROGRAM needs, for launchers that set them themselves");
    app.prefix_command();
    app.formatter(std::make_shared<UsageWithProgram>());
    try {
        app.parse(count, arguments);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 2;
    }
    std::vector<std::string> command = app.remaining();
    if (!command.empty() && command[0] == "--") command.erase(command.begin());
    if (command.empty() || command[0].starts_with('-')) {
        write_error_line(
            "mpisec exec: " + (command.empty() ? "which program?" : "there is no option " + command[0]) +
            "; see mpisec exec --help");
        return 2;
    }
    auto done = environment ? print_variables(command, mpi) : replace_process(command, mpi);
    if (done) return 0;
    complain_of_node(done.error());
    return search_path(command[0]).empty() && access(command[0].c_str(), F_OK) != 0 ? 127 : 126;
}

}  // namespace mpisec::cli
