#include "config/settings.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "base/key_text.hpp"
#include "config/file.hpp"
#include "config/sources.hpp"
#include "config/table.hpp"
#include "config/values.hpp"

namespace mpisec::config {
namespace {

constexpr std::string_view prefix = "MPISEC_";
constexpr std::string_view lab_prefix = "MPISEC_LAB_";
// Variables of the OpenSSL provider (docs/provider.md), which a job may run under, and the one that `mpisec profile` sets for its library.
constexpr std::string_view other_variables[] = {"MPISEC_PROVIDER_LIBRARY", "MPISEC_PROVIDER_THREADS",
                                                "MPISEC_PROFILE"};

bool starts_with(std::string_view text, std::string_view start) {
    return text.substr(0, start.size()) == start;
}

bool belongs_to_others(std::string_view variable) {
    const std::string_view name = variable.substr(0, variable.find('='));
    return starts_with(name, lab_prefix) || std::find(std::begin(other_variables), std::end(other_variables),
                                                      name) != std::end(other_variables);
}

Result<void> apply_variable(Settings& settings, std::string_view name, std::string_view value) {
    // Of an unknown variable only the name is printed: its value may be a key that somebody meant for MPIsec (S5).
    const Setting* setting = find_variable(name);
    if (!setting)
        return fail(
            fmt::format("The variable {} is not a setting of MPIsec; the closest is {}. Correct or unset it.",
                        name, nearest_variable(name).variable));
    if (value.empty()) return {};
    if (Result<void> set = setting->set(settings, value); !set)
        return fail(fmt::format("{} cannot be \"{}\": {}.", name, shown(value), set.error().message));
    settings.origin.emplace_back(name, "environment");
    return {};
}

/// Defaults that depend on who runs the process. Without a home directory nothing is remembered (cache_dir
/// stays empty).
void set_home_defaults(Settings& settings) {
    const std::string home = home_directory();
    if (home.empty()) return;
    settings.config = home + "/.config/mpisec/config.toml";
    settings.key_file = home + "/.config/mpisec/key";
    settings.cache_dir = home + "/.cache/mpisec";
}

}  // namespace

Result<void> apply_environment(Settings& settings, const char* const* environment) {
    for (; *environment; ++environment) {
        const std::string_view variable = *environment;
        if (!starts_with(variable, prefix) || belongs_to_others(variable)) continue;
        const std::size_t equals = std::min(variable.find('='), variable.size());
        const std::string_view value = variable.substr(std::min(equals + 1, variable.size()));
        if (Result<void> applied = apply_variable(settings, variable.substr(0, equals), value); !applied)
            return applied;
    }
    return {};
}

Result<std::string> read_config_file(const std::string& path, bool may_be_absent) {
    return read_file(path, "settings file", "MPISEC_CONFIG names another", may_be_absent);
}

Result<Settings> load() {
    Settings settings;
    set_home_defaults(settings);

    // The file comes first, so that variables override it; only its own path is needed before.
    const char* pinned = std::getenv("MPISEC_CONFIG");
    const bool is_pinned = pinned && *pinned;
    if (is_pinned)
        if (Result<void> applied = apply_variable(settings, "MPISEC_CONFIG", pinned); !applied)
            return tl::unexpected(applied.error());
    if (!settings.config.empty()) {
        Result<std::string> text = read_config_file(settings.config, !is_pinned);
        if (!text) return tl::unexpected(text.error());
        if (!text->empty())
            if (Result<void> applied = apply_toml(settings, *text, settings.config); !applied)
                return tl::unexpected(applied.error());
    }
    if (Result<void> applied = apply_environment(settings, environ); !applied)
        return tl::unexpected(applied.error());
    if (settings.key_file.empty())
        return fail(
            "There is no home directory (HOME is not set), so the key file has no default place: set "
            "MPISEC_KEY_FILE.");
    return settings;
}

std::vector<Row> rows(const Settings& settings) {
    std::vector<Row> all;
    for (const Setting& setting : table()) {
        const std::string variable(setting.variable);
        const auto origin = std::ranges::find(settings.origin.rbegin(), settings.origin.rend(), variable,
                                              [](const auto& entry) { return entry.first; });
        all.push_back({variable, std::string(shown(setting.show(settings))),
                       origin == settings.origin.rend() ? "default" : origin->second});
    }
    return all;
}

std::string describe(const Settings& settings) {
    const std::vector<Row> all = rows(settings);
    std::size_t variable_width = 0, value_width = 0;
    for (const Row& row : all) {
        variable_width = std::max(variable_width, row.variable.size());
        value_width = std::max(value_width, row.value.size());
    }
    std::string text;
    for (const Row& row : all)
        text += fmt::format("{:{}}  {:{}}  {}\n", row.variable, variable_width, row.value, value_width,
                            row.origin);
    return text;
}

}  // namespace mpisec::config
