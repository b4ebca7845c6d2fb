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
    /// Ranks that differ in it do not start together (src/shim/startup/hello.cpp). Of MPISEC_TUNING the file's content must agree, and of
    /// MPISEC_AEAD the cipher.
    bool must_agree = false;
};

std::span<const Setting> table();

const Setting* find_variable(std::string_view variable);  ///< null when there is none of this name
const Setting* find_key(std::string_view key);
/// As the TOML key of a setting would be, in lower case, where that is a setting that only a variable can have; null for other keys.
const Setting* find_variable_of_key(std::string_view key);
/// For "did you mean", without regard to case: the name with the smallest edit distance (Levenshtein).
const Setting& nearest_variable(std::string_view variable);
const Setting& nearest_key(std::string_view key);  ///< of those that have a key

}  // namespace mpisec::config
