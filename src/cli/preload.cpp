#include "cli/preload.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <sstream>

#include "cli/program.hpp"

namespace mpisec::cli {
namespace {

/// What the loader does with a library first: read its headers, map its code. Fails on a mount without exec,
/// too.
Result<void> loadable(const std::string& path) {
    auto elf = read_elf(path);
    if (!elf) return tl::unexpected(elf.error());
    if (!*elf || (*elf)->bits != 64 || (*elf)->machine != this_machine || (*elf)->soname.empty())
        return fail(path + " is not a shared library for this processor: install MPIsec again");
    int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    void* page = mmap(nullptr, 1, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    int error = errno;
    if (fd >= 0) close(fd);
    if (page == MAP_FAILED)
        return fail(path + " cannot be loaded as code (" + std::strerror(error) +
                    "): is it on a file system mounted with noexec?");
    munmap(page, 1);
    return {};
}

}  // namespace

Result<std::string> preload_with(const std::string& shim, const std::string& present) {
    if (shim.find_first_of(" :$") != std::string::npos)
        return fail("LD_PRELOAD cannot name " + shim +
                    ": move MPIsec to a path without spaces, colons and dollar signs");
    if (auto fine = loadable(shim); !fine) return tl::unexpected(fine.error());
    std::string listed = present;
    for (char& c : listed)
        if (c == ':') c = ' ';  // ld.so(8): either separates
    std::istringstream names(listed);
    for (std::string name; names >> name;) {
        if (name == shim) return present;
        std::string file = name.substr(name.rfind('/') + 1);
        if (file.starts_with("libmpisec-"))
            return fail("LD_PRELOAD already has " + name + ", which is not " + shim +
                        ": unset it, `mpisec exec` sets it itself");
    }
    return present.empty() ? shim : shim + ":" + present;
}

}  // namespace mpisec::cli
