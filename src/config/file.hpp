// Files that every rank reads when MPI starts.
#pragma once

#include <string>

#include "base/error.hpp"

namespace mpisec::config {

/// The file's bytes, at most 1 MiB. `what` and `hint` are for messages: "The WHAT PATH cannot be opened: ….
/// HINT." An absent file is empty when it `may_be_absent`.
Result<std::string> read_file(const std::string& path, const char* what, const char* hint,
                              bool may_be_absent = false);

}  // namespace mpisec::config
