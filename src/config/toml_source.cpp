#include <fmt/format.h>

#include <algorithm>

#include "base/key_text.hpp"
#include "base/toml.hpp"
#include "config/sources.hpp"
#include "config/table.hpp"

namespace mpisec::config {
namespace {

/// The value as text, as a variable would have it; false for types that no setting has (booleans, dates, arrays, tables).
bool as_text(const toml::node& value, std::string& text) {
    if (const auto* string = value.as_string())
        text = string->get();
    else if (const auto* integer = value.as_integer())
        text = fmt::format("{}", integer->get());
    else if (const auto* number = value.as_floating_point())
        text = fmt::format("{}", number->get());
    else
        return false;
    return true;
}

Result<void> apply_entry(Settings& settings, std::string_view key, const toml::node& value,
                         const std::string& path) {
    const auto line = value.source().begin.line;
    const Setting* setting = find_key(key);
    if (const Setting* variable = find_variable_of_key(key))
        return fail(fmt::format("{}, line {}: \"{}\" cannot be set in a file, only by the variable {}.", path,
                                line, key, variable->variable));
    if (!setting)
        return fail(fmt::format("{}, line {}: \"{}\" is not a setting of MPIsec; the closest is \"{}\".",
                                path, line, key, nearest_key(key).key));
    std::string text;
    if (!as_text(value, text))
        return fail(fmt::format("{}, line {}: {} takes a string or a number ({}).", path, line, key,
                                setting->accepted));
    if (Result<void> set = setting->set(settings, text); !set)
        return fail(fmt::format("{}, line {}: {} cannot be \"{}\": {}.", path, line, key, shown(text),
                                set.error().message));
    settings.origin.emplace_back(setting->variable, "file " + path);
    return {};
}

/// toml++ before 3.4 has undefined behaviour on some characters beyond ASCII (its issue 190), so none of these may reach it.
Result<void> check_ascii(std::string_view text, const std::string& path) {
    const auto* beyond =
        std::find_if(text.begin(), text.end(), [](char c) { return static_cast<signed char>(c) < 0; });
    if (beyond == text.end()) return {};
    return fail(fmt::format(
        "{}, line {}: only ASCII characters are accepted; inside a string write others as \\uXXXX.", path,
        1 + std::count(text.begin(), beyond, '\n')));
}

}  // namespace

Result<void> apply_toml(Settings& settings, std::string_view text, const std::string& path) {
    if (Result<void> ascii = check_ascii(text, path); !ascii) return ascii;
    const toml::parse_result parsed = toml::parse(text, std::string_view(path));
    if (!parsed)
        return fail(fmt::format("{}, line {}: this is not TOML: {}.", path,
                                parsed.error().source().begin.line, parsed.error().description()));
    for (const auto& [key, value] : parsed.table())
        if (Result<void> applied = apply_entry(settings, key.str(), value, path); !applied) return applied;
    return {};
}

}  // namespace mpisec::config
