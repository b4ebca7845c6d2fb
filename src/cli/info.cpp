// mpisec info: what this installation is made of.
#include <cstdio>
#include <filesystem>

#include "aead/aead.hpp"
#include "base/version.hpp"
#include "cli/commands.hpp"
#include "cli/crypto_report.hpp"
#include "cli/places.hpp"

namespace mpisec::cli {
namespace {

void print_paths() {
    std::printf("program      %s\n", std::filesystem::read_symlink("/proc/self/exe").c_str());
    std::printf("libraries    %s\n", library_directory().c_str());
    for (const std::string& directory : python_directories())
        std::printf("python       %s\n", directory.c_str());
}

/// True when every family can be served.
bool print_families() {
    bool all = true;
    for (Family family : families) {
        auto shim = shim_path(family);
        all = all && shim.has_value();
        std::printf("mpi          %-8s %s: %s\n", std::string(name(family)).c_str(),
                    std::string(description(family)).c_str(), shim ? shim->c_str() : "not built");
    }
    return all;
}

}  // namespace

std::string version_line() {
    return "mpisec " + std::string(version) + " (" MPISEC_BUILD ")";
}

void add_info(CLI::App& app, Status& status) {
    CLI::App* info = app.add_subcommand("info", "Print version, paths, MPI families and crypto libraries");
    info->footer(
        "Exit status 1 when a part is missing: a library for an MPI family, or every crypto library.");
    info->callback([&status] {
        std::printf("%s\n", version_line().c_str());
        print_paths();
        bool families_there = print_families();
        bool crypto_there = print_crypto_libraries();
        status = families_there && crypto_there ? 0 : 1;
    });
}

}  // namespace mpisec::cli
