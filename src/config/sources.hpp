// Where settings come from; load() calls these in turn, the tests and the fuzzers one by one.
#pragma once

#include <string>
#include <string_view>

#include "config/settings.hpp"

namespace mpisec::config {

/// Sets what the TOML text says (flat keys; values are strings, integers or floats). `path` is for messages and origins.
Result<void> apply_toml(Settings& settings, std::string_view text, const std::string& path);

/// Sets what the MPISEC_ variables of `environment` say (as in environ(7): "NAME=value", null at the end).
Result<void> apply_environment(Settings& settings, const char* const* environment);

/// The file's bytes; an empty text when it is absent and `may_be_absent`. At most 1 MiB.
Result<std::string> read_config_file(const std::string& path, bool may_be_absent);

}  // namespace mpisec::config
