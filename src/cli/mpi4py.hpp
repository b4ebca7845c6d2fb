// Which MPI library mpi4py would load: its wheels find one at run time (mpi4py 4.1, mpi4py/_mpiabi.py).
#pragma once

#include <optional>
#include <string>

#include "cli/family.hpp"
#include "cli/program.hpp"

namespace mpisec::cli {

struct FoundMpi {
    Family family;
    std::string library;  ///< path, or how it was named
    std::string why;      ///< for people
};

/// What the user pinned: MPI4PY_MPIABI, MPI4PY_LIBMPI.
std::optional<FoundMpi> mpi4py_pinned(const Program& python);

/// What mpi4py would find by itself: lib/ of the virtual environment, of the user's site, of the interpreter,
/// then the loader's search.
std::optional<FoundMpi> mpi4py_default(const Program& python);

}  // namespace mpisec::cli
