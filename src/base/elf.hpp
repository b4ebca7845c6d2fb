// The few parts of an ELF file (System V gABI, chapters 4 and 5) that tell how a program is started and what it
// is linked with.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace mpisec {

struct Elf {
    unsigned bits = 0;          ///< 32 or 64
    std::uint16_t machine = 0;  ///< e_machine, EM_…
    std::string interpreter;    ///< PT_INTERP, the dynamic loader; empty: a static program, or a library
    std::string soname;         ///< DT_SONAME
    std::vector<std::string> needed;  ///< DT_NEEDED, in order
};

/// Reads the headers of the file at `path`. Nothing when it is not ELF; an error when it cannot be read or
/// its headers lead outside of the file. For a file with another word size or byte order, only `bits` and
/// `machine` are filled.
Result<std::optional<Elf>> read_elf(const std::string& path);

enum class Symbols { imported, defined };
/// Names in the dynamic symbol table that begin with MPI_, PMPI_, mpi_ or pmpi_. Empty when the file has no
/// such table.
std::vector<std::string> mpi_symbols(const std::string& path, Symbols which);

/// Whether the file defines a symbol, in the dynamic or the static table, whose name begins with `beginning`.
bool defines_symbol(const std::string& path, std::string_view beginning);

/// Whether an MPI library is linked into the file itself (libmpich.a and the like). Without symbols, MPICH's family and Open MPI are
/// recognized by texts of theirs.
bool contains_mpi_library(const std::string& path);

}  // namespace mpisec
