#include "cli/exec.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "cli/detect.hpp"
#include "cli/places.hpp"
#include "cli/preload.hpp"
#include "config/settings.hpp"

namespace mpisec::cli {
namespace {

constexpr const char* help =
    "Runs an MPI program with its traffic between nodes sealed. It takes the program's place, under any "
    "launcher:\n\n"
    "  mpisec exec [--mpi FAMILY] [--] PROGRAM [ARGUMENTS...]\n\n"
    "  mpiexec -n 64 mpisec exec ./app input.dat\n"
    "  srun mpisec exec python3 solve.py\n"
    "  mpiexec -n 4 mpisec exec --mpi openmpi -- ./run.sh\n";

Result<void> replace_process(const std::vector<std::string>& command, const std::string& mpi) {
    auto settings = config::load();  // a wrong setting is said here, once per rank but before MPI starts
    if (!settings) return tl::unexpected(settings.error());
    auto program = find_program(command[0]);
    if (!program) return tl::unexpected(program.error());
    auto found = detect(*program, {command.begin() + 1, command.end()}, mpi, settings->mpi);
    if (!found) return tl::unexpected(found.error());
    auto shim = shim_path(found->family);
    if (!shim) return tl::unexpected(shim.error());
    const char* present = std::getenv("LD_PRELOAD");
    auto preload = preload_with(*shim, present ? present : "");
    if (!preload) return tl::unexpected(preload.error());

    setenv("LD_PRELOAD", preload->c_str(), 1);
    std::vector<char*> arguments;
    for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    return fail("can not start " + command[0] + ": " + std::strerror(errno));
}

}  // namespace

int exec_command(int count, char** arguments) {
    CLI::App app{help, "mpisec exec"};
    std::string mpi;
    app.add_option("--mpi", mpi,
                   "MPI family of PROGRAM, where it can not be seen: mpich (also Intel MPI), abi, openmpi")
        ->type_name("FAMILY");
    app.prefix_command();
    CLI11_PARSE(app, count, arguments);

    std::vector<std::string> command = app.remaining();
    if (!command.empty() && command[0] == "--") command.erase(command.begin());
    if (command.empty() || command[0].starts_with('-')) {
        std::fprintf(stderr, "mpisec exec: %s; see mpisec exec --help\n",
                     command.empty() ? "which program?" : ("there is no option " + command[0]).c_str());
        return 2;
    }
    auto done = replace_process(command, mpi);
    std::fprintf(stderr, "mpisec exec: %s\n", done.error().message.c_str());
    return search_path(command[0]).empty() && access(command[0].c_str(), F_OK) != 0 ? 127 : 126;
}

}  // namespace mpisec::cli
