// The value of LD_PRELOAD that puts MPIsec between a program and its MPI.
#pragma once

#include <string>

#include "base/error.hpp"

namespace mpisec::cli {

/// `shim` before what `present` (the current value, may be empty) asks for; `present` itself when the shim is
/// in it already. An error when another of MPIsec's libraries is in it, or when the path has a character that
/// LD_PRELOAD can not carry.
Result<std::string> preload_with(const std::string& shim, const std::string& present);

}  // namespace mpisec::cli
