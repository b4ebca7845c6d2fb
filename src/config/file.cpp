#include "config/file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/key_text.hpp"

namespace mpisec::config {
namespace {

constexpr std::size_t max_file_bytes = 1 << 20;

}  // namespace

Result<std::string> read_file(const std::string& path, const char* what, const char* hint,
                              bool may_be_absent) {
    auto failed = [&](const std::string& how) {
        return fail(fmt::format("The {} {} {}. {}.", what, shown(path), how, hint));
    };
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        if (may_be_absent && (errno == ENOENT || errno == ENOTDIR)) return std::string();
        return failed(fmt::format("cannot be opened: {}", std::strerror(errno)));
    }
    std::string text(max_file_bytes + 1, '\0');
    std::size_t n = 0;
    ssize_t got = 0;
    while (n < text.size() &&
           ((got = read(file, text.data() + n, text.size() - n)) > 0 || (got < 0 && errno == EINTR)))
        if (got > 0) n += static_cast<std::size_t>(got);
    const int error = errno;
    close(file);
    if (got < 0) return failed(fmt::format("cannot be read: {}", std::strerror(error)));
    if (n > max_file_bytes) return failed("is longer than 1 MiB");
    text.resize(n);
    return text;
}

}  // namespace mpisec::config
