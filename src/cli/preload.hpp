// The value of LD_PRELOAD that puts MPIsec between a program and its MPI.
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "cli/program.hpp"

namespace mpisec::cli {

/// Paths of the tools of MPI's profiling interface (mpiP, Score-P and the like) that a program is linked with.
std::vector<std::string> linked_profiling_tools(const Program& program);

/// `shim` before what `present` (the current value, which can be empty) asks for; `present` itself when it has the shim already. Only tools of
/// MPI's profiling interface come before the shim, those of `present` and those that the program is linked with: the program's MPI_X is
/// theirs, and the PMPI_X that they call is the shim's. The loader only warns about a library that it cannot preload and then starts the
/// program without it (ld.so(8)), so all that could keep the loader from preloading the shim is an error here (S1): a path with characters
/// that LD_PRELOAD cannot carry, a file that cannot be read or mapped for execution, another of MPIsec's libraries in `present`.
Result<std::string> preload_with(const std::string& shim, const std::vector<std::string>& linked_tools,
                                 const std::string& present);

}  // namespace mpisec::cli
