// The part of `mpisec doctor` that is about one program.
#pragma once

#include <string>
#include <vector>

#include "cli/findings.hpp"
#include "config/settings.hpp"

namespace mpisec::cli {

/// Which MPI the program uses, what would be preloaded, and which of the MPI procedures that it calls are
/// protected.
void examine_program(const std::vector<std::string>& command, const std::string& mpi,
                     const config::Settings& settings, Findings& findings);

}  // namespace mpisec::cli
