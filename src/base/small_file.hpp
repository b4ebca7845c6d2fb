// Files of /proc and /sys: they are short, and every rank reads them at start-up, where a stream costs more than the file.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <string>

namespace mpisec {

/// The first 4 KiB of the file, which must come in one read; empty when it cannot be read.
inline std::string read_small_file(const char* path) {
    const int file = ::open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return {};
    char text[4096];
    const ssize_t bytes = ::read(file, text, sizeof text);
    ::close(file);
    return {text, bytes > 0 ? static_cast<std::size_t>(bytes) : 0};
}

}  // namespace mpisec
