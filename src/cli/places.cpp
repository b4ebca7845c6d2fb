#include "cli/places.hpp"

#include <unistd.h>

#include <filesystem>

namespace mpisec::cli {
namespace {

namespace fs = std::filesystem;

/// The PREFIX in PREFIX/bin/mpisec.
fs::path prefix() {
    std::error_code error;
    return fs::read_symlink("/proc/self/exe", error).parent_path().parent_path();
}

/// share/mpisec of the prefix; then, for a build tree, each directory above, one of which is the source tree.
std::vector<fs::path> data_directories() {
    std::vector<fs::path> directories;
    for (fs::path base = prefix() / "share" / "mpisec"; base.has_relative_path(); base = base.parent_path())
        directories.push_back(base);
    return directories;
}

}  // namespace

std::string library_directory() {
    std::error_code error;
    for (const char* directory : {MPISEC_LIBDIR, "lib"})
        if (fs::path path = prefix() / directory; fs::exists(path / "mpisec", error)) return path;
    return {};
}

namespace {

/// `kind`FAMILY.so in the directory of the libraries.
Result<std::string> library_path(const std::string& kind, Family family) {
    std::string file = kind + std::string(name(family)) + ".so";
    fs::path path = fs::path(library_directory()) / file;
    std::error_code error;
    if (library_directory().empty() || !fs::exists(path, error))
        return fail("this installation of MPIsec has no library for " + std::string(description(family)) +
                    ": " + file + " is not in " +
                    (library_directory().empty() ? (prefix() / "lib").string() : library_directory()));
    return path.string();
}

}  // namespace

Result<std::string> shim_path(Family family) {
    return library_path("libmpisec-", family);
}

Result<std::string> profile_library_path(Family family) {
    return library_path("libmpisec-profile-", family);
}

std::string data_file(const std::string& relative) {
    std::error_code error;
    for (const fs::path& base : data_directories())
        if (fs::exists(base / relative, error)) return base / relative;
    return {};
}

std::string python() {
    const fs::path beside = prefix() / "bin" / "python3";
    return access(beside.c_str(), X_OK) == 0 ? beside.string() : "python3";
}

std::vector<std::string> python_directories() {
    std::vector<std::string> found;
    for (const char* package : {"lab/mpisec_lab", "bench/mpisec_bench"})
        if (fs::path path = data_file(package); !path.empty()) found.push_back(path.parent_path());
    return found;
}

}  // namespace mpisec::cli
