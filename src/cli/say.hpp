// How the commands report: results on standard output, failures as one sentence on standard error.
#pragma once

#include <string>

#include "base/error.hpp"
#include "base/error_line.hpp"

namespace mpisec::cli {

/// Prints "mpisec COMMAND: sentence" and returns the exit status 1.
inline int complain(const char* command, const Error& error) {
    write_error_line("mpisec " + std::string(command) + ": " + error.message);
    return 1;
}

}  // namespace mpisec::cli
