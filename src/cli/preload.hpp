// The value of LD_PRELOAD that puts MPIsec between a program and its MPI.
#pragma once

#include <string>

#include "base/error.hpp"
#include "cli/program.hpp"

namespace mpisec::cli {

/// The value with which `program` is started here: `library`, one of MPIsec's, before what the current value asks for; that value itself when
/// it has the library already. Only tools of MPI's profiling interface (mpiP, Score-P and the like) come before the library, those of the
/// current value and those that the program is linked with: the program's MPI_X is theirs, and the PMPI_X that they call is the library's. The
/// loader only warns about a library that it cannot preload and then starts the program without it (ld.so(8)), so all that could keep the
/// loader from preloading it is an error here (S1): a path with characters that LD_PRELOAD cannot carry, a file that cannot be read or mapped
/// for execution, another of MPIsec's libraries in the current value. An error in place of `library` is handed on.
Result<std::string> preload_of(const Program& program, const Result<std::string>& library);

}  // namespace mpisec::cli
