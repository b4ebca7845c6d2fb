// Text to value and back, for every kind of setting. Errors say what is accepted; the caller adds which setting it was.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace mpisec::config {

/// Digits with an optional suffix K, M or G (2^10, 2^20, 2^30); the range includes both limits.
Result<std::uint64_t> parse_size(std::string_view text, std::uint64_t lowest, std::uint64_t highest);
/// The shortest text that parse_size() reads as `size`.
std::string show_size(std::uint64_t size);

Result<int> parse_integer(std::string_view text, int lowest, int highest);

/// Seconds, with optional decimals; at least `lowest`, at most `highest`.
Result<double> parse_seconds(std::string_view text, double highest, double lowest = 0);

/// True for `yes`, false for `no`, an error for all else.
Result<bool> parse_choice(std::string_view text, std::string_view yes, std::string_view no);

/// A name that another module checks: anything but an empty text.
Result<std::string> parse_name(std::string_view text);

/// A path; "~/" at its start is the home directory, which a shell does not replace inside a TOML file.
Result<std::string> parse_path(std::string_view text);

/// HOME, else what the user database says (which may cost a network look-up), else empty.
std::string home_directory();

}  // namespace mpisec::config
