#include "cli/places.hpp"

#include <filesystem>

namespace mpisec::cli {
namespace {

namespace fs = std::filesystem;

/// PREFIX of PREFIX/bin/mpisec and of PREFIX/LIBDIR/mpisec/mpisec-tool: the nearest directory above that holds bin/mpisec.
fs::path prefix() {
    std::error_code error;
    fs::path here = fs::read_symlink("/proc/self/exe", error).parent_path();
    for (fs::path up = here; up.has_relative_path(); up = up.parent_path())
        if (fs::exists(up / "bin" / "mpisec", error)) return up;
    return here.parent_path();
}

}  // namespace

std::string library_directory() {
    std::error_code error;
    for (const char* directory : {MPISEC_LIBDIR, "lib"})
        if (fs::path path = prefix() / directory; fs::exists(path / "mpisec", error)) return path;
    return {};
}

Result<std::string> shim_path(Family family) {
    std::string file = "libmpisec-" + std::string(name(family)) + ".so";
    fs::path path = fs::path(library_directory()) / file;
    std::error_code error;
    if (library_directory().empty() || !fs::exists(path, error))
        return fail("this installation of MPIsec has no library for " + std::string(description(family)) + ": " + file +
                    " is not in " + (prefix() / "lib").string());
    return path.string();
}

std::vector<std::string> python_directories() {
    std::vector<std::string> found;
    std::error_code error;
    for (fs::path base = prefix() / "share" / "mpisec"; ; base = base.parent_path()) {
        for (const char* part : {"lab", "bench"})
            if (fs::exists(base / part / (std::string("mpisec_") + part), error)) found.push_back(base / part);
        if (!found.empty() || !base.has_relative_path()) return found;
    }
}

std::string tool_path() { return fs::path(library_directory()) / "mpisec" / "mpisec-tool"; }

}  // namespace mpisec::cli
