#include "cli/mpi4py.hpp"

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <vector>

#include "cli/loader.hpp"

namespace mpisec::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* library_names[] = {"libmpi.so", "libmpi.so.12", "libmpi.so.40"};  // in mpi4py's order

std::optional<FoundMpi> look_at(const fs::path& file, const std::string& why) {
    std::error_code ignored;
    if (!fs::is_regular_file(file, ignored)) return std::nullopt;
    auto elf = read_elf(file);  // libmpi.so of the wheels is a linker script: not ELF, not loadable
    if (!elf || !*elf) return std::nullopt;
    auto family = family_of_library((*elf)->soname);
    if (!family) return std::nullopt;
    return FoundMpi{*family, file, why};
}

std::optional<FoundMpi> look_in(const fs::path& directory, const std::string& why) {
    for (const char* name : library_names)
        if (auto found = look_at(directory / name, why)) return found;
    return std::nullopt;
}

/// Searches as dlopen(NAME) would: the program's own search path, LD_LIBRARY_PATH, the loader's cache.
std::optional<FoundMpi> look_everywhere(const Program& python, const std::string& names,
                                        const std::string& why) {
    for (const LoadedLibrary& library : libraries_of(python, names))
        if (looks_like_mpi(fs::path(library.path).filename().string()))
            if (auto found = look_at(library.path, why)) return found;
    return std::nullopt;
}

/// The environment that `python` belongs to (PEP 405), else the directory that holds its bin/.
fs::path prefix_of(const Program& python) {
    std::error_code ignored;
    fs::path here = fs::absolute(python.executable, ignored).parent_path();
    if (fs::exists(here.parent_path() / "pyvenv.cfg", ignored)) return here.parent_path();
    return fs::weakly_canonical(python.executable, ignored).parent_path().parent_path();
}

}  // namespace

std::optional<FoundMpi> mpi4py_pinned(const Program& python) {
    if (const char* abi = std::getenv("MPI4PY_MPIABI")) {
        std::string wanted = abi;
        if (wanted == "mpiabi") wanted = "abi";
        if (wanted == "impi") wanted = "mpich";
        if (auto family = family_by_name(wanted))
            return FoundMpi{*family, "", std::string("MPI4PY_MPIABI=") + abi};
    }
    const char* pinned = std::getenv("MPI4PY_LIBMPI");
    std::istringstream entries(pinned ? pinned : "");
    std::string why = std::string("MPI4PY_LIBMPI=") + (pinned ? pinned : "");
    for (std::string entry; std::getline(entries, entry, ':');) {
        std::error_code ignored;
        auto found = fs::is_directory(entry, ignored)       ? look_in(entry, why)
                     : entry.find('/') != std::string::npos ? look_at(entry, why)
                                                            : look_everywhere(python, entry, why);
        if (found) return found;
    }
    return std::nullopt;
}

std::optional<FoundMpi> mpi4py_default(const Program& python) {
    fs::path prefix = prefix_of(python);
    if (prefix != "/usr")
        if (auto found = look_in(prefix / "lib", "where mpi4py looks first")) return found;
    if (const char* home = std::getenv("HOME"))
        if (auto found = look_in(fs::path(home) / ".local" / "lib", "where mpi4py looks in the user's site"))
            return found;
    std::string names;
    for (const char* name : library_names) names += (names.empty() ? "" : ":") + std::string(name);
    return look_everywhere(python, names, "what the loader finds for mpi4py");
}

}  // namespace mpisec::cli
