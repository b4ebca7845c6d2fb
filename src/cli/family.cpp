#include "cli/family.hpp"

namespace mpisec::cli {
namespace {

/// "libmpi.so.12" -> "libmpi" and "12".
struct Soname {
    std::string_view stem, version;
};
Soname split(std::string_view name) {
    auto at = name.find(".so");
    if (at == std::string_view::npos) return {name, {}};
    std::string_view rest = name.substr(at + 3);
    return {name.substr(0, at), rest.starts_with('.') ? rest.substr(1) : std::string_view()};
}

bool is_version(std::string_view version, std::string_view major) {
    return version == major || (version.starts_with(major) && version[major.size()] == '.');
}

}  // namespace

std::string_view name(Family family) {
    switch (family) {
        case Family::mpich:
            return "mpich";
        case Family::abi:
            return "abi";
        case Family::openmpi:
            return "openmpi";
    }
    return "";
}

std::string_view description(Family family) {
    switch (family) {
        case Family::mpich:
            return "MPICH, Intel MPI, MVAPICH and Cray MPICH";
        case Family::abi:
            return "the standard ABI of MPI 5";
        case Family::openmpi:
            return "Open MPI 4.1 and 5.0";
    }
    return "";
}

std::optional<Family> family_by_name(std::string_view wanted) {
    for (Family family : families)
        if (name(family) == wanted) return family;
    return std::nullopt;
}

std::optional<Family> family_of_library(std::string_view soname) {
    auto [stem, version] = split(soname);
    if (stem.starts_with("libmpi_abi")) return Family::abi;
    // MPICH ABI initiative: major version 12; Debian and old MPICH say libmpich, Cray libmpi_COMPILER. Open
    // MPI: 40.
    bool is_c = stem == "libmpi" || stem.starts_with("libmpi_");
    if (is_version(version, "12") &&
        (is_c || stem.starts_with("libmpich") || stem == "libmpifort" || stem == "libmpicxx"))
        return Family::mpich;
    if (is_version(version, "40") && is_c) return Family::openmpi;
    return std::nullopt;
}

bool looks_like_mpi(std::string_view soname) {
    std::string_view stem = split(soname).stem;
    return stem == "libmpi" || stem.starts_with("libmpi_") || stem.starts_with("libmpich") ||
           stem == "libmpifort" || stem == "libmpicxx";
}

}  // namespace mpisec::cli
