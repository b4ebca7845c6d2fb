// mpisec profile: a plain run that counts what would be sealed, and a prediction of what that would cost.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
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

#include "cli/commands.hpp"
#include "cli/detect.hpp"
#include "cli/launcher.hpp"
#include "cli/places.hpp"
#include "cli/preload.hpp"
#include "cli/profile_report.hpp"
#include "cli/say.hpp"

namespace mpisec::cli {
namespace {

struct ProfileOptions {
    std::string mpi, output, report;
    bool json = false;
    std::vector<std::string> command;
};

/// The file in which rank 0 of the program says what was counted; it is deleted with this object.
class Told {
  public:
    Told() {
        const char* tmp = std::getenv("TMPDIR");
        directory_ = std::string(tmp && *tmp ? tmp : "/tmp") + "/mpisec-profile-XXXXXX";
        if (!mkdtemp(directory_.data())) directory_.clear();
    }
    ~Told() {
        std::error_code error;
        if (!directory_.empty()) std::filesystem::remove_all(directory_, error);
    }
    Told(const Told&) = delete;
    Told& operator=(const Told&) = delete;
    bool good() const { return !directory_.empty(); }
    std::string file() const { return directory_ + "/counted.json"; }

  private:
    std::string directory_;
};

Result<std::string> preload_for(const std::vector<std::string>& command, const std::string& mpi,
                                const std::string& setting) {
    auto program = find_program(command);
    if (!program) return tl::unexpected(program.error());
    auto found = detect(*program, command, mpi, setting);
    if (!found) return tl::unexpected(found.error());
    return preload_of(*program, profile_library_path(found->family));
}

[[noreturn]] void become_program(const std::vector<std::string>& command, const std::string& preload,
                                 const std::string& file) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // a launcher may kill this process alone
    setenv("LD_PRELOAD", preload.c_str(), 1);
    setenv("MPISEC_PROFILE", file.c_str(), 1);
    std::vector<char*> arguments;
    for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    std::fprintf(stderr, "mpisec profile: cannot start %s: %s\n", arguments[0], std::strerror(errno));
    _exit(127);
}

/// The child's exit status, as a shell would give it.
int wait_for_child(pid_t child) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

Result<void> print_prediction(const std::string& file, const ProfileOptions& options,
                              const config::Settings& settings, std::FILE* to) {
    auto prediction = predict(file, settings);
    if (!prediction) return tl::unexpected(prediction.error());
    std::fprintf(to, "%s\n", (options.json ? as_json(*prediction) : as_text(*prediction)).c_str());
    return {};
}

/// Empty, or why the file cannot be written.
std::string why_not_writable(const std::string& file) {
    const std::filesystem::path directory = std::filesystem::absolute(file).parent_path();
    const bool there = access(file.c_str(), F_OK) == 0;
    if (access(there ? file.c_str() : directory.c_str(), there ? W_OK : W_OK | X_OK) == 0) return {};
    return "cannot write " + file + ": " + std::strerror(errno);
}

Result<int> run_and_predict(const ProfileOptions& options, const config::Settings& settings) {
    const Told told;
    if (!told.good())
        return fail("cannot make a directory for what is counted: " + std::string(std::strerror(errno)));
    auto preload = preload_for(options.command, options.mpi, settings.mpi);
    if (!preload) return tl::unexpected(preload.error());
    // Said before the run, which may be long. It does not end here: ranks of other nodes would wait for this one, and the prediction is printed.
    if (!options.output.empty() && may_be_rank_0())
        if (const std::string why = why_not_writable(options.output); !why.empty())
            write_error_line("mpisec profile: " + why);
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child < 0) return fail("cannot start a process: " + std::string(std::strerror(errno)));
    if (child == 0) become_program(options.command, *preload, told.file());
    const int status = wait_for_child(child);
    std::error_code error;
    if (!std::filesystem::exists(told.file(), error))
        return status;  // not rank 0, or it did not get to the end
    if (auto done = print_prediction(told.file(), options, settings, stderr); !done)
        return tl::unexpected(done.error());
    if (!options.output.empty() &&
        !std::filesystem::copy_file(told.file(), options.output,
                                    std::filesystem::copy_options::overwrite_existing, error))
        return fail("cannot write " + options.output + ": " + error.message());
    return status;
}

Result<int> profile(const ProfileOptions& options) {
    const auto settings = config::load();
    if (!settings) return tl::unexpected(settings.error());
    if (!options.report.empty()) {
        auto done = print_prediction(options.report, options, *settings, stdout);
        if (!done) return tl::unexpected(done.error());
        return 0;
    }
    if (options.command.empty()) return fail("which program? See mpisec profile --help");
    return run_and_predict(options, *settings);
}

}  // namespace

void add_profile(CLI::App& app, Status& status) {
    CLI::App* command =
        app.add_subcommand("profile", "Run a program without MPIsec and predict what sealing it would cost");
    command->footer(
        "  mpiexec -n 64 mpisec profile ./app input.dat\n"
        "  mpiexec -n 64 mpisec profile -o counted.json ./app\n"
        "  MPISEC_AEAD=aes-128-gcm mpisec profile --report counted.json\n\n"
        "The program runs in clear. Its sends, collectives and one-sided operations between nodes are "
        "counted; at the end rank 0's "
        "process prints, on standard error, how much would have been sealed and opened and how long this "
        "machine's crypto libraries "
        "take for that. Algorithms of collectives are simulated. Files, start-up and waiting are not "
        "predicted.");
    auto options = std::make_shared<ProfileOptions>();
    command
        ->add_option("--mpi", options->mpi,
                     "MPI family of PROGRAM, where it cannot be detected: mpich, abi, openmpi")
        ->type_name("FAMILY");
    command->add_option("-o,--output", options->output, "Keep what was counted in this file")
        ->type_name("FILE");
    command->add_option("--report", options->report, "Run nothing: predict from what was kept")
        ->type_name("FILE");
    command->add_flag("--json", options->json, "The prediction as JSON");
    command->add_option("PROGRAM", options->command, "the program and its arguments");
    command->positionals_at_end();
    command->prefix_command();
    command->callback([=, &status] {
        std::vector<std::string> rest = command->remaining();
        options->command.insert(options->command.end(), rest.begin(), rest.end());
        if (!options->command.empty() && options->command[0] == "--")
            options->command.erase(options->command.begin());
        auto done = profile(*options);
        status = done ? *done : complain("profile", done.error());
    });
}

}  // namespace mpisec::cli
