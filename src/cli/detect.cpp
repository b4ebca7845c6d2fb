#include "cli/detect.hpp"

#include <map>
#include <span>

#include "cli/launcher.hpp"
#include "cli/loader.hpp"

namespace mpisec::cli {
namespace {

constexpr const char* how_to_say = "say which with mpisec exec --mpi mpich|abi|openmpi, or MPISEC_MPI";

Result<FoundMpi> named(const std::string& value, const std::string& where) {
    if (auto family = family_by_name(value)) return FoundMpi{*family, "", where};
    return fail(where + "=" + value + " names no MPI family; it is one of mpich, abi, openmpi");
}

using Found = Result<std::optional<FoundMpi>>;

/// One family among `libraries`, none, or an error for two or for an MPI that no family covers.
Found decide(const std::string& who, const std::vector<LoadedLibrary>& libraries, const std::string& why) {
    std::map<Family, std::string> found;
    std::string unknown;
    for (const LoadedLibrary& library : libraries) {
        std::string file = library.name.substr(library.name.rfind('/') + 1);
        if (auto family = family_of_library(file))
            found.emplace(*family, library.path.empty() ? file : library.path);
        else if (looks_like_mpi(file))
            unknown = file;
    }
    if (found.contains(Family::abi)) found.erase(Family::mpich);  // a libmpi_abi may sit on its MPI's libmpi
    if (found.size() > 1)
        return fail(who + " loads two MPIs, " + found.begin()->second + " and " + found.rbegin()->second +
                    "; " + how_to_say);
    if (!found.empty()) return FoundMpi{found.begin()->first, found.begin()->second, why};
    if (!unknown.empty())
        return fail(who + " uses " + unknown +
                    ", an MPI that MPIsec does not know (it knows libmpi.so.12 and libmpich.so.12, "
                    "libmpi_abi.so.1, libmpi.so.40)");
    return std::nullopt;
}

Found by_elf(const std::string& who, const Elf& elf) {
    std::vector<LoadedLibrary> libraries;
    for (const std::string& needed : elf.needed) libraries.push_back({needed, ""});
    return decide(who, libraries, "linked with " + who);
}

bool only_runs_others(const Program& program) {
    return program.is_script || program.is_python;
}

/// By what the program itself is linked with, then by what its libraries are: only the loader knows where those are (RPATH,
/// RUNPATH, its cache).
Found by_links(const Program& program) {
    auto direct = by_elf(program.executable, program.elf);
    if (!direct || *direct || only_runs_others(program)) return direct;
    return decide(program.executable, libraries_of(program), "loaded by a library of " + program.executable);
}

/// `mpisec exec numactl -N 0 ./app`: the first argument that is itself a program using MPI.
Found by_arguments(std::span<const std::string> arguments) {
    for (const std::string& argument : arguments) {
        if (argument.find('/') == std::string::npos || search_path(argument).empty()) continue;
        auto elf = read_elf(argument);
        if (!elf || !*elf) continue;
        auto found = by_elf(argument, **elf);
        if (!found || *found) return found;
    }
    return std::nullopt;
}

Result<FoundMpi> by_surroundings(const Program& program) {
    auto launcher = find_launcher();
    if (!launcher) return tl::unexpected(launcher.error());
    if (launcher->family) return FoundMpi{*launcher->family, "", "started by " + launcher->name};
    if (program.is_python)
        if (auto found = mpi4py_default(program)) return *found;
    if (launcher->name.empty())
        return fail(program.path +
                    " does not use MPI as far as can be seen, and no MPI launcher started this process; "
                    "if it loads MPI later, " +
                    how_to_say);
    return fail(program.path + " is not linked with MPI, and " + launcher->name + " may start any MPI; " +
                how_to_say);
}

}  // namespace

Result<FoundMpi> detect(const Program& program, const std::vector<std::string>& command,
                        const std::string& given, const std::string& setting) {
    if (!given.empty()) return named(given, "--mpi");
    if (!setting.empty()) return named(setting, "MPISEC_MPI");
    Found found = by_links(program);
    if (found && !*found) found = by_arguments(std::span(command).subspan(1));
    if (!found) return tl::unexpected(found.error());
    if (*found) return **found;
    if (program.is_python)
        if (auto pinned = mpi4py_pinned(program)) return *pinned;
    return by_surroundings(program);
}

}  // namespace mpisec::cli
