// The families of MPI libraries: all versions in a family share an ABI, and one libmpisec-NAME.so serves
// them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace mpisec::cli {

enum class Family { mpich, abi, openmpi };
inline constexpr Family families[] = {Family::mpich, Family::abi, Family::openmpi};

/// As in --mpi, MPISEC_MPI and libmpisec-NAME.so.
std::string_view name(Family family);
/// For people, e.g. "Open MPI 4.1 and 5.0".
std::string_view description(Family family);
std::optional<Family> family_by_name(std::string_view name);

/// The family of a shared library's DT_SONAME or DT_NEEDED name; nothing when it is not an MPI library, or of no
/// family that MPIsec serves.
std::optional<Family> family_of_library(std::string_view soname);
/// True for what looks like an MPI library, of whatever family and version.
bool looks_like_mpi(std::string_view soname);

}  // namespace mpisec::cli
