// Commands that are Python packages beside this program (design.md section 8: Python is never on the path of
// a running job).
#pragma once

#include <string>
#include <vector>

#include "cli/commands.hpp"

namespace mpisec::cli {

/// Makes `command` become `python3 -m package first… REST`, its --help included.
void run_in_python(CLI::App& command, Status& status, const std::string& package,
                   const std::vector<std::string>& first);

}  // namespace mpisec::cli
