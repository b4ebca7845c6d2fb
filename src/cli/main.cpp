// The mpisec program: `exec` is done here, with nothing else loaded, because it runs once per rank; every other command is in
// LIBDIR/mpisec/mpisec-tool, whose libraries (libcrypto first) would double the time that `exec` takes.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "cli/exec.hpp"
#include "cli/places.hpp"

int main(int count, char** arguments) {
    if (count > 1 && std::strcmp(arguments[1], "exec") == 0) return mpisec::cli::exec_command(count - 1, arguments + 1);
    std::string tool = mpisec::cli::tool_path();
    execv(tool.c_str(), arguments);
    std::fprintf(stderr, "mpisec: can not start %s: %s; is the installation complete?\n", tool.c_str(), std::strerror(errno));
    return 126;
}
