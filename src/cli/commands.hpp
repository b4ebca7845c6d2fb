// The commands of mpisec other than exec. Each add_… adds its options to the command line; once that is parsed, the command
// leaves its exit status in `status`: 0 done, 1 failed or something wrong found, 2 a command line that
// makes no sense.
#pragma once

#include <CLI/App.hpp>
#include <string>

namespace mpisec::cli {

using Status = int;

void add_key(CLI::App& app, Status& status);         ///< key new, show, check
void add_doctor(CLI::App& app, Status& status);      ///< doctor [-- PROGRAM]
void add_info(CLI::App& app, Status& status);        ///< info
void add_profile(CLI::App& app, Status& status);     ///< profile PROGRAM
void add_provider(CLI::App& app, Status& status);    ///< provider
void add_bench(CLI::App& app, Status& status);       ///< bench crypto, and what bench/ measures
void add_report(CLI::App& app, Status& status);      ///< report RESULT…
void add_sim(CLI::App& app, Status& status);         ///< sim COLLECTIVE
void add_stats(CLI::App& app, Status& status);       ///< stats FILE…
void add_tune(CLI::App& app, Status& status);        ///< tune --simulate
void add_algorithms(CLI::App& app, Status& status);  ///< algorithms
void add_lab(CLI::App& app, Status& status);         ///< lab …

/// "mpisec 0.2.0 (GNU 12.2.0, RelWithDebInfo)"
std::string version_line();

}  // namespace mpisec::cli
