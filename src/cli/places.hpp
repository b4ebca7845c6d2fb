// Where MPIsec's own files are, found from this program's place: PREFIX/bin/mpisec beside PREFIX/lib, in the build tree alike.
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "cli/family.hpp"

namespace mpisec::cli {

/// Directory of the libmpisec-FAMILY.so; mpisec/ in it holds the crypto plug-ins. Empty when there is none.
std::string library_directory();

/// The library to preload for `family`; an error that says where it was looked for.
Result<std::string> shim_path(Family family);

/// Directories with the Python parts (lab, bench): PREFIX/share/mpisec/*, or the source tree's when run from its build tree.
std::vector<std::string> python_directories();

/// The program of all commands but `exec`.
std::string tool_path();

}  // namespace mpisec::cli
