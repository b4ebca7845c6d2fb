#include "cli/loader.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <sstream>

extern char** environ;

namespace mpisec::cli {
namespace {

std::string output_of(const char* const arguments[], char* const environment[]) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return {};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    pid_t child = 0;
    int error = posix_spawn(&child, arguments[0], &actions, nullptr, const_cast<char* const*>(arguments),
                            environment);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    std::string output;
    char block[4096];
    for (ssize_t n; error == 0 && (n = read(ends[0], block, sizeof block)) > 0;)
        output.append(block, static_cast<std::size_t>(n));
    close(ends[0]);
    if (error == 0) waitpid(child, nullptr, 0);
    return output;
}

/// Lines read "\tlibmpi.so.12 => /usr/lib/libmpi.so.12 (0x…)", "\t/lib64/ld-linux-x86-64.so.2 (0x…)" or
/// "\tlibx.so => not found".
std::vector<LoadedLibrary> parse(const std::string& listing) {
    std::vector<LoadedLibrary> libraries;
    std::istringstream lines(listing);
    for (std::string line; std::getline(lines, line);) {
        line.erase(0, line.find_first_not_of(" \t"));
        if (auto address = line.rfind(" (0x"); address != std::string::npos) line.erase(address);
        auto arrow = line.find(" => ");
        std::string name = line.substr(0, arrow);
        std::string path = arrow == std::string::npos ? name : line.substr(arrow + 4);
        libraries.push_back({name, path == "not found" ? "" : path});
    }
    return libraries;
}

}  // namespace

std::vector<LoadedLibrary> libraries_of(const Program& program, const std::string& preload) {
    const char* arguments[] = {program.elf.interpreter.c_str(), "--list", program.executable.c_str(),
                               nullptr};
    if (preload.empty()) return parse(output_of(arguments, environ));
    std::vector<char*> environment;
    std::string setting = "LD_PRELOAD=" + preload;
    for (char** variable = environ; *variable; ++variable)
        if (std::strncmp(*variable, "LD_PRELOAD=", 11) != 0) environment.push_back(*variable);
    environment.push_back(setting.data());
    environment.push_back(nullptr);
    return parse(output_of(arguments, environment.data()));
}

}  // namespace mpisec::cli
