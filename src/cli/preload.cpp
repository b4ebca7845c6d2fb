#include "cli/preload.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string_view>
#include <vector>

#include "base/elf.hpp"
#include "cli/family.hpp"
#include "cli/loader.hpp"

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

/// What LD_PRELOAD cannot name (ld.so(8)).
constexpr const char* separators = " :$";

constexpr std::string_view of_every_language[] = {"libc.",        "libm.",     "libdl.",     "librt.",
                                                  "libpthread.",  "libgcc_s.", "libstdc++.", "libgfortran.",
                                                  "libquadmath.", "ld-linux"};

/// Whether it is a tool of MPI's profiling interface (MPI standard chapter 15): its MPI_X calls PMPI_X. Not one that takes the place of socket
/// calls, too: it would hide from MPIsec who makes them.
bool is_profiling_tool(const std::string& path) {
    if (path.find('/') == std::string::npos) return false;  // the loader's to find
    for (const char* call : {"connect", "accept", "accept4"})
        if (defines_symbol(path, {call, std::strlen(call) + 1})) return false;
    const std::vector<std::string> imported = mpi_symbols(path, Symbols::imported);
    const std::vector<std::string> defined = mpi_symbols(path, Symbols::defined);
    // A PMPI_X of its own would take the place of MPIsec's, and what it sends would be in clear (S1).
    if (std::ranges::any_of(defined, [](const std::string& name) { return name.starts_with("PMPI_"); }))
        return false;
    return std::ranges::any_of(defined, [&](const std::string& name) {
        return std::ranges::find(imported, "P" + name) != imported.end();
    });
}

/// Processes that the program starts get the library as well: it must bring its MPI library with it.
bool can_be_preloaded(const std::string& path) {
    if (path.find_first_of(separators) != std::string::npos) return false;
    const auto elf = read_elf(path);
    return elf && *elf && std::ranges::any_of((*elf)->needed, looks_like_mpi);
}

/// Paths of the tools of MPI's profiling interface that a program is linked with.
std::vector<std::string> linked_profiling_tools(const Program& program) {
    // Only those linked before the MPI library come to be called. What every program is linked with is not worth a look.
    std::vector<std::string> candidates;
    for (const std::string& needed : program.elf.needed) {
        if (looks_like_mpi(needed)) break;
        const bool common = std::ranges::any_of(
            of_every_language, [&](std::string_view beginning) { return needed.starts_with(beginning); });
        if (!common) candidates.push_back(needed);
    }
    std::vector<std::string> tools;
    if (candidates.empty()) return tools;
    for (const LoadedLibrary& library : libraries_of(program)) {
        const bool candidate = std::ranges::find(candidates, library.name) != candidates.end();
        if (candidate && can_be_preloaded(library.path) && is_profiling_tool(library.path))
            tools.push_back(library.path);
    }
    return tools;
}

/// `shim` and `linked_tools` among what `present` has.
Result<std::string> preload_with(const std::string& shim, const std::vector<std::string>& linked_tools,
                                 const std::string& present) {
    if (shim.find_first_of(separators) != std::string::npos)
        return fail("LD_PRELOAD cannot name " + shim +
                    ": move MPIsec to a path without spaces, colons and dollar signs");
    if (auto fine = loadable(shim); !fine) return tl::unexpected(fine.error());
    std::string listed = present;
    for (char& c : listed)
        if (c == ':') c = ' ';  // ld.so(8): either separates
    std::istringstream names(listed);
    std::string before, behind;
    for (const std::string& tool : linked_tools) before += tool + ":";
    for (std::string name; names >> name;) {
        if (name == shim) return present;
        std::string file = name.substr(name.rfind('/') + 1);
        if (file.starts_with("libmpisec-"))
            return fail("LD_PRELOAD already has " + name + ", which is not " + shim +
                        ": unset it, `mpisec exec` sets it itself");
        if (is_profiling_tool(name))
            before += name + ":";
        else
            behind += ":" + name;
    }
    return before + shim + behind;
}

}  // namespace

Result<std::string> preload_of(const Program& program, const Result<std::string>& library) {
    if (!library) return library;
    const char* present = std::getenv("LD_PRELOAD");
    return preload_with(*library, linked_profiling_tools(program), present ? present : "");
}

}  // namespace mpisec::cli
