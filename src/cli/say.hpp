// How the commands speak: results on standard output, failures as one sentence on standard error.
#pragma once

#include <cstdio>
#include <string>

#include "base/error.hpp"

namespace mpisec::cli {

/// Prints "mpisec COMMAND: sentence" and returns the exit status 1.
inline int complain(const char* command, const Error& error) {
    std::fprintf(stderr, "mpisec %s: %s\n", command, error.message.c_str());
    return 1;
}

}  // namespace mpisec::cli
