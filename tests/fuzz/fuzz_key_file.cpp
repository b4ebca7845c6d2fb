// The key file: accepted only when it is the one line that its documentation describes, and then read as that
// line says.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "check.hpp"
#include "keys/key_file.hpp"

using namespace mpisec;

namespace {

std::string hex(std::span<const std::uint8_t> bytes) {
    std::string text;
    for (std::uint8_t byte : bytes) {
        text += "0123456789abcdef"[byte >> 4];
        text += "0123456789abcdef"[byte & 15];
    }
    return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const int file = [] {
        const int fd = memfd_create("key", MFD_CLOEXEC);
        FUZZ_CHECK(fd >= 0 && fchmod(fd, 0600) == 0);
        return fd;
    }();
    FUZZ_CHECK(ftruncate(file, 0) == 0);
    FUZZ_CHECK(pwrite(file, data, size, 0) == static_cast<ssize_t>(size));
    const auto key = keys::read_key_file("/proc/self/fd/" + std::to_string(file));
    if (!key) {
        FUZZ_CHECK(!key.error().message.empty());
        return 0;
    }
    const std::string text(reinterpret_cast<const char*>(data), size);
    FUZZ_CHECK(text.starts_with("mpisec-key-1 " + hex(key->span()) + " "));
    FUZZ_CHECK(size == 86 || (size == 87 && text.back() == '\n'));
    return 0;
}
