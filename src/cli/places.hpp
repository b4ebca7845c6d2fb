// Where MPIsec's own files are, found from this program's place: PREFIX/bin/mpisec beside PREFIX/lib, also in the
// build tree.
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
/// The library that only counts (mpisec profile).
Result<std::string> profile_library_path(Family family);

/// Directories with the Python parts (lab, bench): PREFIX/share/mpisec/*, or the source tree's when run from
/// its build tree.
std::vector<std::string> python_directories();

/// The interpreter for these: PREFIX/bin/python3, which a virtual environment has beside this program, else the
/// one on PATH.
std::string python();

/// A file of MPIsec's under share/mpisec, or in the source tree when run from its build tree; empty when it
/// is not there.
std::string data_file(const std::string& relative);

}  // namespace mpisec::cli
