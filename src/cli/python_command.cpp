#include "cli/python_command.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "cli/places.hpp"
#include "cli/say.hpp"

namespace mpisec::cli {
namespace {

/// As `python3 -m` does, but without looking for modules in the current directory, where another user may have put some. (The option -P is
/// of Python 3.11.)
constexpr const char* start_module =
    "import sys\n"
    "sys.path[:] = [directory for directory in sys.path if directory]\n"
    "import runpy\n"
    "runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)\n";

}  // namespace

Error become_python(const std::string& module, const std::vector<std::string>& arguments) {
    const std::string package = module.substr(0, module.find('.'));
    std::string path;
    bool there = false;
    for (const std::string& directory : python_directories()) {
        path += directory + ":";
        there = there || access((directory + "/" + package).c_str(), F_OK) == 0;
    }
    if (!there) return {"this installation lacks its Python package " + package + " (share/mpisec)"};
    const char* present = std::getenv("PYTHONPATH");
    std::istringstream further(present ? present : "");
    for (std::string directory; std::getline(further, directory, ':');)
        if (!directory.empty()) path += directory + ":";  // an empty one would be the current directory
    path.pop_back();
    setenv("PYTHONPATH", path.c_str(), 1);
    const std::string interpreter = python();
    std::vector<const char*> words = {interpreter.c_str(), "-c", start_module, module.c_str()};
    for (const std::string& argument : arguments) words.push_back(argument.c_str());
    words.push_back(nullptr);
    execvp(words[0], const_cast<char* const*>(words.data()));
    return {"cannot start " + interpreter + ": " + std::strerror(errno)};
}

void run_in_python(CLI::App& command, Status& status, const std::string& package,
                   const std::vector<std::string>& first) {
    command.prefix_command();
    command.set_help_flag();  // the package has its own
    command.callback([=, &command, &status] {
        std::vector<std::string> arguments = first;
        for (const std::string& word : command.remaining()) arguments.push_back(word);
        status = complain(command.get_name().c_str(), become_python(package, arguments));
    });
}

void add_lab(CLI::App& app, Status& status) {
    run_in_python(*app.add_subcommand("lab", "A cluster on this machine: network namespaces as nodes"),
                  status, "mpisec_lab", {});
}

}  // namespace mpisec::cli
