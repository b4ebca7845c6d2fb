// mpisec doctor --nodes: what each node of a job has, in one table.
#pragma once

#include <string>
#include <vector>

#include "cli/commands.hpp"

namespace mpisec::cli {

/// Runs `launcher` (a shell command line) followed by `mpisec doctor --line -- COMMAND`, and prints a table of the answers.
Status examine_nodes(const std::string& launcher, const std::vector<std::string>& command,
                     const std::string& mpi);

/// What runs on each node: prints one line for examine_nodes().
Status print_node_line(const std::vector<std::string>& command, const std::string& mpi);

}  // namespace mpisec::cli
