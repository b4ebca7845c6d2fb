// The one table of settings: it drives reading, the listing of `mpisec doctor` and docs/configuration.md (a test compares them).
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "config/settings.hpp"

namespace mpisec::config {

struct Setting {
    std::string_view variable;       ///< MPISEC_…
    std::string_view key;            ///< in the TOML file; empty: only the variable
    std::string_view default_value;  ///< as in the documentation
    std::string_view accepted;       ///< as in the documentation
    Result<void> (*set)(Settings& settings, std::string_view text);
    std::string (*show)(const Settings& settings);
};

std::span<const Setting> table();

const Setting* find_variable(std::string_view variable);  ///< null when there is none of this name
const Setting* find_key(std::string_view key);
/// For "did you mean": the name with the smallest edit distance (Levenshtein).
const Setting& nearest_variable(std::string_view variable);
const Setting& nearest_key(std::string_view key);  ///< of those that have a key

}  // namespace mpisec::config
