// The mpisec program. `exec` is handled first and touches nothing of the rest, because it runs once per rank.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "base/error_line.hpp"
#include "cli/commands.hpp"
#include "cli/exec.hpp"

namespace mpisec::cli {
namespace {

constexpr const char* help =
    "MPIsec encrypts the network traffic of unmodified MPI programs.\n\n"
    "  mpisec key new                               once per user\n"
    "  mpiexec -n 64 mpisec exec ./app              any launcher; what leaves a node is sealed\n"
    "  mpisec doctor -- ./app                       what would be protected, what is missing\n"
    "  mpisec lab run --nodes 2 -n 4 ./app          the same on one machine";

/// CLI11 only says that a subcommand is required, whatever stands in its place. False when nothing does.
bool name_unknown_command(const CLI::App& app) {
    const CLI::App* at = &app;
    std::string path = "mpisec";
    while (!at->get_subcommands().empty()) {
        at = at->get_subcommands().front();
        path += " " + at->get_name();
    }
    const std::vector<std::string> words = at->remaining();
    if (at->get_subcommands({}).empty() || words.empty()) return false;
    const std::string what =
        words[0].starts_with('-') ? "option " + words[0] : "command \"" + words[0] + "\"";
    write_error_line(path + ": there is no " + what + "; see " + path + " --help");
    return true;
}

int run(int count, char** arguments) {
    CLI::App app{help, "mpisec"};
    app.require_subcommand(1);
    app.set_version_flag("--version", version_line());
    // Only listed here: main() has handled it already.
    app.add_subcommand("exec", "Run an MPI program with its traffic between nodes sealed");
    Status status = 0;
    add_key(app, status);
    add_doctor(app, status);
    add_info(app, status);
    add_provider(app, status);
    add_bench(app, status);
    add_report(app, status);
    add_sim(app, status);
    add_stats(app, status);
    add_profile(app, status);
    add_tune(app, status);
    add_algorithms(app, status);
    add_lab(app, status);
    try {
        app.parse(count, arguments);
    } catch (const CLI::RequiredError& error) {
        if (!name_unknown_command(app)) app.exit(error);
        return 2;
    } catch (const CLI::ParseError& error) {
        int code = app.exit(error);
        return code == 0 ? 0 : 2;
    }
    return status;
}

}  // namespace
}  // namespace mpisec::cli

int main(int count, char** arguments) {
    if (count > 1 && std::strcmp(arguments[1], "exec") == 0)
        return mpisec::cli::exec_command(count - 1, arguments + 1);
    std::set_new_handler([] {
        std::fputs("mpisec: There is not enough memory for this.\n", stderr);
        std::_Exit(1);
    });
    const int status = mpisec::cli::run(count, arguments);
    if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return status;
    std::fputs("mpisec: Not everything could be written to standard output.\n", stderr);
    return status == 0 ? 1 : status;
}
