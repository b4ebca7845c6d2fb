#include "cli/program.hpp"

#include <elf.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>
#include <string_view>
#include <system_error>
#include <vector>

#include "cli/family.hpp"

namespace mpisec::cli {

#if defined(__x86_64__)
const std::uint16_t this_machine = EM_X86_64;
#elif defined(__aarch64__)
const std::uint16_t this_machine = EM_AARCH64;
#else
#error "say here which e_machine this processor is"
#endif

namespace {

std::string_view base_name(std::string_view path) {
    return path.substr(path.rfind('/') + 1);
}

std::vector<std::string> words(const std::string& line) {
    std::istringstream stream(line);
    std::vector<std::string> found;
    for (std::string word; stream >> word;) found.push_back(word);
    return found;
}

/// The first line of a script without its "#!"; empty when there is none.
std::string shebang(const std::string& path) {
    char line[256] = {};  // the kernel's limit
    std::ifstream file(path, std::ios::binary);
    file.getline(line, sizeof line);
    return line[0] == '#' && line[1] == '!' ? line + 2 : "";
}

/// What `env` in a shebang line starts: its first word that is neither an option nor an assignment.
std::string command_of_env(const std::vector<std::string>& arguments) {
    for (std::size_t i = 1; i < arguments.size(); ++i)
        if (!arguments[i].starts_with('-') && arguments[i].find('=') == std::string::npos)
            return arguments[i];
    return {};
}

/// The interpreter of the script at `path`; execvp gives a text without "#!" to the shell.
Result<std::string> interpreter(const std::string& path) {
    std::vector<std::string> line = words(shebang(path));
    if (line.empty()) return std::string("/bin/sh");
    std::string command = base_name(line[0]) == "env" ? command_of_env(line) : line[0];
    std::string found = command.empty() ? "" : search_path(command);
    if (found.empty())
        return fail("the script " + path + " needs an interpreter that is not installed: #!" + shebang(path));
    return found;
}

/// The loader ignores LD_PRELOAD for these (ld.so(8), "secure-execution mode").
bool runs_privileged(const std::string& path) {
    struct stat status {};
    if (stat(path.c_str(), &status) != 0) return false;
    return (status.st_mode & (S_ISUID | S_ISGID)) != 0 ||
           getxattr(path.c_str(), "security.capability", nullptr, 0) > 0;
}

/// Programs that start a program in a container: under another root directory, where the library to be preloaded is missing
/// and the loader goes on without it, or with another environment.
constexpr std::string_view container_starters[] = {"apptainer", "ch-run", "docker",  "enroot",
                                                   "podman",    "sarus",  "shifter", "singularity"};

/// Programs that start another program, which is among their arguments.
constexpr std::string_view wrappers[] = {"chrt",    "env",    "ionice",  "nice", "numactl",
                                         "setarch", "stdbuf", "taskset", "time", "timeout"};

bool is_one_of(std::span<const std::string_view> names, std::string_view name) {
    return std::ranges::find(names, name) != names.end();
}

/// By its name, or that of what it is a link to: x86_64 is setarch.
bool is_wrapper(const std::string& path) {
    std::error_code error;
    const std::string target = std::filesystem::canonical(path, error);
    return is_one_of(wrappers, base_name(path)) || is_one_of(wrappers, base_name(target));
}

Result<void> refuse_container(const std::string& starter) {
    return fail(starter +
                " starts a program in a container, where MPIsec does not get from out here. Put mpisec exec "
                "in front of the program in the container: apptainer exec image.sif mpisec exec ./app");
}

Result<void> refuse_unreachable(const Program& program) {
    const std::string& path = program.executable;
    for (std::string_view name : {base_name(program.path), base_name(path)})
        if (is_one_of(container_starters, name)) return refuse_container(program.path);
    if (program.elf.bits != 64 || program.elf.machine != this_machine)
        return fail(path + " is built for another kind of processor than mpisec (ELF" +
                    std::to_string(program.elf.bits) + ", machine " + std::to_string(program.elf.machine) +
                    ")");
    if (program.elf.interpreter.empty())
        return fail(path +
                    " is statically linked: MPIsec cannot get between it and MPI. Link it with the shared "
                    "MPI library");
    // Interpreters are left to the preloaded library, which looks, too: it takes a millisecond.
    const bool is_interpreter = program.is_script || program.is_python;
    const bool uses_shared_mpi = std::ranges::any_of(program.elf.needed, looks_like_mpi);
    if (!is_interpreter && !uses_shared_mpi && contains_mpi_library(path))
        return fail(
            path +
            " contains an MPI library: MPIsec cannot get between it and MPI. Link it with the shared MPI "
            "library");
    if (program.elf.interpreter.find("ld-musl") != std::string::npos)
        return fail(path +
                    " is built for musl, whose loader ignores libraries that need glibc, as MPIsec's do. "
                    "Build it for glibc");
    if (runs_privileged(path))
        return fail(
            path +
            " is set-user-ID, set-group-ID or has file capabilities: the loader would not let MPIsec in. "
            "Start it without these");
    return {};
}

bool is_executable_file(const std::string& path) {
    struct stat status {};
    return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && access(path.c_str(), X_OK) == 0;
}

Result<std::string> locate(const std::string& name) {
    std::string path = search_path(name);
    if (!path.empty()) return path;
    if (name.find('/') == std::string::npos) return fail("there is no program " + name + " on PATH");
    struct stat status {};
    if (stat(name.c_str(), &status) != 0)
        return fail("there is no program " + name + ": " + std::strerror(errno));
    return fail(name + (S_ISDIR(status.st_mode) ? " is a directory" : " is not executable (chmod +x?)"));
}

}  // namespace

std::string search_path(const std::string& name) {
    if (name.find('/') != std::string::npos) return is_executable_file(name) ? name : "";
    const char* path = std::getenv("PATH");
    std::istringstream directories(path ? path : "/bin:/usr/bin");
    for (std::string directory; std::getline(directories, directory, ':');) {
        std::string candidate = (directory.empty() ? "." : directory) + "/" + name;
        if (is_executable_file(candidate)) return candidate;
    }
    return {};
}

namespace {

Result<void> refuse_unreachable_behind(const Program& program, const std::vector<std::string>& command) {
    if (!is_wrapper(program.path)) return {};
    const auto starter = std::find_if(command.begin() + 1, command.end(), [](const std::string& word) {
        return is_one_of(container_starters, base_name(word));
    });
    if (starter != command.end()) return refuse_container(*starter);
    // The first word that is a program is taken for the one that is started. After an option, a word without a slash may be its value.
    auto started = command.begin() + 1;
    for (; started != command.end(); ++started) {
        const bool may_be_value = started[-1].starts_with('-') && started->find('/') == std::string::npos;
        const std::string path = started->starts_with('-') || may_be_value ? "" : search_path(*started);
        if (!path.empty() && !is_wrapper(path)) break;
    }
    if (started == command.end()) return {};
    auto behind = find_program(*started);
    return behind ? Result<void>{} : tl::unexpected(behind.error());
}

}  // namespace

Result<Program> find_program(const std::vector<std::string>& command) {
    auto program = find_program(command[0]);
    if (!program) return program;
    if (auto in_reach = refuse_unreachable_behind(*program, command); !in_reach)
        return tl::unexpected(in_reach.error());
    return program;
}

Result<Program> find_program(const std::string& name) {
    auto path = locate(name);
    if (!path) return tl::unexpected(path.error());
    Program program{*path, *path, {}, false, false};
    for (int depth = 0; depth < 5; ++depth) {  // the kernel follows that many interpreters
        auto elf = read_elf(program.executable);
        if (!elf) return tl::unexpected(elf.error());
        if (*elf) {
            program.elf = **elf;
            program.is_python = base_name(program.executable).starts_with("python");
            if (auto reachable = refuse_unreachable(program); !reachable)
                return tl::unexpected(reachable.error());
            return program;
        }
        program.is_script = true;
        auto next = interpreter(program.executable);
        if (!next) return tl::unexpected(next.error());
        program.executable = *next;
    }
    return fail("the script " + *path + " names interpreters that lead back to each other");
}

}  // namespace mpisec::cli
