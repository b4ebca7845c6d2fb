#include "config/values.hpp"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

#include "base/key_text.hpp"

namespace mpisec::config {
namespace {

unsigned suffix_bits(char suffix) {
    switch (suffix) {
        case 'K':
        case 'k':
            return 10;
        case 'M':
        case 'm':
            return 20;
        case 'G':
        case 'g':
            return 30;
        default:
            return 0;
    }
}

/// Reads the whole of `text` as a number; false when part of it is not a number, or when it does not fit.
template <class Number>
bool read_all(std::string_view text, Number& number) {
    const char* end = text.data() + text.size();
    auto [stopped, error] = std::from_chars(text.data(), end, number);
    return error == std::errc() && stopped == end;
}

}  // namespace

Result<std::uint64_t> parse_size(std::string_view text, std::uint64_t lowest, std::uint64_t highest) {
    const unsigned bits = text.empty() ? 0 : suffix_bits(text.back());
    std::uint64_t number = 0;
    const bool read = read_all(bits ? text.substr(0, text.size() - 1) : text, number);
    if (!read || number > highest >> bits || number << bits < lowest)
        return fail(
            fmt::format("a whole number from {} to {} is accepted, with a suffix K, M or G (powers of two)",
                        show_size(lowest), show_size(highest)));
    return number << bits;
}

std::string show_size(std::uint64_t size) {
    for (auto [suffix, bits] : {std::pair('G', 30), std::pair('M', 20), std::pair('K', 10)})
        if (size && size % (1ull << bits) == 0) return fmt::format("{}{}", size >> bits, suffix);
    return fmt::format("{}", size);
}

Result<int> parse_integer(std::string_view text, int lowest, int highest) {
    int number = 0;
    if (!read_all(text, number) || number < lowest || number > highest)
        return fail(fmt::format("a whole number from {} to {} is accepted", lowest, highest));
    return number;
}

Result<double> parse_seconds(std::string_view text, double highest, double lowest) {
    double seconds = 0;
    if (!read_all(text, seconds) ||
        !(seconds >= lowest && seconds <= highest))  // so that NaN is refused as well
        return fail(fmt::format("a time in seconds from {} to {} is accepted", lowest, highest));
    return seconds;
}

Result<bool> parse_choice(std::string_view text, std::string_view yes, std::string_view no) {
    if (text == yes) return true;
    if (text == no) return false;
    return fail(fmt::format("\"{}\" or \"{}\" is accepted", yes, no));
}

Result<std::string> parse_name(std::string_view text) {
    if (text.empty() || is_a_key(text)) return fail("a name is accepted");
    return std::string(text);
}

Result<std::string> parse_path(std::string_view text) {
    if (text.empty() || text.find('\0') != std::string_view::npos) return fail("a path is accepted");
    if (is_a_key(text)) return std::string(text);  // so that keys::read_key_file() knows it, too
    if (text != "~" && text.substr(0, 2) != "~/") {
        // The program may change its directory before the path is used.
        std::error_code failed;
        const std::filesystem::path whole = std::filesystem::absolute(std::string(text), failed);
        return failed ? std::string(text) : whole.string();
    }
    std::string home = home_directory();
    if (home.empty())
        return fail("\"~\" stands for the home directory, but HOME is not set: write the whole path");
    return home.append(text.substr(1));
}

std::string home_directory() {
    if (const char* home = std::getenv("HOME"); home && *home) return home;
    std::vector<char> names(16 * 1024);
    passwd entry{};
    passwd* found = nullptr;
    if (getpwuid_r(geteuid(), &entry, names.data(), names.size(), &found) != 0 || !found || !found->pw_dir)
        return {};
    return found->pw_dir;
}

}  // namespace mpisec::config
