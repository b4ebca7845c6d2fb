// mpisec key share: copies the key file to other nodes over ssh.
#pragma once

#include <CLI/App.hpp>

#include "cli/commands.hpp"

namespace mpisec::cli {

void add_key_share(CLI::App& key, Status& status);

}  // namespace mpisec::cli
