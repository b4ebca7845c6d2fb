// The dynamic loader's own answer to "which shared libraries would this program get, and from where".
#pragma once

#include <string>
#include <vector>

#include "cli/program.hpp"

namespace mpisec::cli {

struct LoadedLibrary {
    std::string name;  ///< as asked for, e.g. libmpi.so.12
    std::string path;  ///< empty: not found
};

/// Runs the program's loader with --list (ld.so(8)), which loads libraries but starts nothing. `preload`, if
/// not empty, is tried as LD_PRELOAD, so that names are searched as dlopen would search them. Costs a process, about 1
/// ms. Empty when the loader cannot tell.
std::vector<LoadedLibrary> libraries_of(const Program& program, const std::string& preload = "");

}  // namespace mpisec::cli
