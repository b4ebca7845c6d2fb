// What a rank says on standard error, which it shares with the other ranks.
#pragma once

#include <unistd.h>

#include <string>

namespace mpisec {

/// Writes the line with one write(), so that lines of several ranks do not run into each other: glibc 2.37 and newer write what fprintf
/// puts into an unbuffered stream in pieces of 128 bytes.
inline void write_error_line(std::string line) {
    line += '\n';
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace mpisec
