// Commands that are Python packages beside this program (Python is never on the path of
// a running job).
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "cli/commands.hpp"

namespace mpisec::cli {

/// Starts `python3 -m module arguments…`, where `module` is a package of MPIsec's or a module in one; returns only when
/// that fails.
Error become_python(const std::string& module, const std::vector<std::string>& arguments);

/// Makes `command` become `python3 -m package first… REST`, its --help included.
void run_in_python(CLI::App& command, Status& status, const std::string& package,
                   const std::vector<std::string>& first);

}  // namespace mpisec::cli
