// The value of LD_PRELOAD that puts MPIsec between a program and its MPI.
#pragma once

#include <string>

#include "base/error.hpp"

namespace mpisec::cli {

/// `shim` before what `present` (the current value, may be empty) asks for; `present` itself when the shim is
/// in it already. The loader only warns about a library that it cannot preload and then starts the program
/// without it (ld.so(8)), so all that could keep the loader from preloading the shim is an error here (S1): a path with
/// characters that LD_PRELOAD cannot carry, a file that cannot be read or mapped for execution, another of
/// MPIsec's libraries in `present`.
Result<std::string> preload_with(const std::string& shim, const std::string& present);

}  // namespace mpisec::cli
