#include "config/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "config/values.hpp"

namespace mpisec::config {
namespace {

constexpr std::uint64_t KiB = 1 << 10, MiB = 1 << 20, TiB = 1ull << 40;

/// Stores a parsed value, or passes the error on.
template <class Field, class Value>
Result<void> store(Field& field, Result<Value> value) {
    if (!value) return tl::unexpected(value.error());
    field = std::move(*value);
    return {};
}

Result<void> set_stats(Settings& s, std::string_view text) {
    const bool to_file = text.substr(0, 5) == "json:" && text.size() > 5;
    if (text != "0" && text != "1" && text != "ranks" && !to_file)
        return fail("\"0\", \"1\", \"ranks\" or \"json:PATH\" is accepted");
    s.stats = text == "0" ? "" : text;
    return {};
}

Result<void> set_workers(Settings& s, std::string_view text) {
    if (text == "auto") return store(s.workers, Result<int>(-1));
    Result<int> workers = parse_integer(text, 0, 256);
    if (!workers) return fail("\"auto\" or a whole number from 0 to 256 is accepted");
    return store(s.workers, workers);
}

/// "auto" becomes 0.
Result<void> set_size(std::uint64_t& size, std::string_view text) {
    if (text == "auto") return store(size, Result<std::uint64_t>(0));
    Result<std::uint64_t> parsed = parse_size(text, KiB, 256 * MiB);
    if (!parsed) return fail("\"auto\" or " + parsed.error().message);
    return store(size, parsed);
}
std::string show_auto_size(std::uint64_t size) {
    return size == 0 ? "auto" : show_size(size);
}

/// For an enumeration that has automatic, on and off.
template <class Choice>
Result<void> set_auto_on_off(Choice& choice, std::string_view text) {
    if (text != "auto" && text != "on" && text != "off")
        return fail("\"auto\", \"on\" or \"off\" is accepted");
    choice = text == "auto" ? Choice::automatic : text == "on" ? Choice::on : Choice::off;
    return {};
}

template <class Choice>
std::string show_auto_on_off(Choice choice) {
    return choice == Choice::automatic ? "auto" : choice == Choice::on ? "on" : "off";
}

Result<void> set_progress(Settings& s, std::string_view text) {
    if (text != "calls" && text != "thread") return fail("\"calls\" or \"thread\" is accepted");
    s.progress = text == "thread" ? Settings::Progress::thread : Settings::Progress::calls;
    return {};
}

constexpr std::string_view same_node_names[] = {"plain", "seal", "verify", "auto"};  // by SameNode

Result<void> set_same_node(Settings& s, std::string_view text) {
    const auto* found = std::find(std::begin(same_node_names), std::end(same_node_names), text);
    if (found == std::end(same_node_names))
        return fail("\"auto\", \"plain\", \"verify\" or \"seal\" is accepted");
    s.same_node = static_cast<Settings::SameNode>(found - std::begin(same_node_names));
    s.same_node_sealed = s.same_node == Settings::SameNode::seal;
    return {};
}

constexpr std::string_view connections_names[] = {"auto", "authenticate", "plain"};  // by Connections

Result<void> set_connections(Settings& s, std::string_view text) {
    const auto* found = std::find(std::begin(connections_names), std::end(connections_names), text);
    if (found == std::end(connections_names))
        return fail("\"auto\", \"authenticate\" or \"plain\" is accepted");
    s.connections = static_cast<Settings::Connections>(found - std::begin(connections_names));
    return {};
}

constexpr std::string_view stall_action_names[] = {"report", "abort", "auto"};  // by StallAction

Result<void> set_stall_action(Settings& s, std::string_view text) {
    const auto* found = std::find(std::begin(stall_action_names), std::end(stall_action_names), text);
    if (found == std::end(stall_action_names)) return fail("\"auto\", \"report\" or \"abort\" is accepted");
    s.stall_action = static_cast<Settings::StallAction>(found - std::begin(stall_action_names));
    return {};
}

Result<void> set_mpi(Settings& s, std::string_view text) {
    if (text != "mpich" && text != "abi" && text != "openmpi")
        return fail("\"mpich\", \"abi\" or \"openmpi\" is accepted");
    s.mpi = text;
    return {};
}

using Text = std::string_view;

/// Places in algorithm_variables.
enum : std::size_t {
#define COLLECTIVE(name, NAME) place_of_##name,
#include "base/collectives.def"
};

/// The row of algorithm_variables[i].
template <std::size_t i>
constexpr Setting algorithm_setting(Text key) {
    return {algorithm_variables[i],
            key,
            "auto",
            "auto or an algorithm's name",
            [](Settings& s, Text t) { return store(s.algorithm[i], parse_name(t)); },
            [](const Settings& s) { return s.algorithm[i]; },
            true};
}

// variable, TOML key, default, accepted, set, show, must agree. Names of libraries, ciphers and algorithms are checked in the modules that have them.
constexpr Setting settings_table[] = {
    {"MPISEC_CONFIG", "", "~/.config/mpisec/config.toml", "path",
     [](Settings& s, Text t) { return store(s.config, parse_path(t)); },
     [](const Settings& s) { return s.config; }},
    {"MPISEC_KEY_FILE", "key_file", "~/.config/mpisec/key", "path",
     [](Settings& s, Text t) { return store(s.key_file, parse_path(t)); },
     [](const Settings& s) { return s.key_file; }},
    {"MPISEC_AEAD", "aead", "auto", "library:cipher, library, cipher, auto or auto:cipher",
     [](Settings& s, Text t) { return store(s.aead, parse_name(t)); },
     [](const Settings& s) { return s.aead; }},
    {"MPISEC_UNPROTECTED", "unprotected", "refuse", "refuse or allow",
     [](Settings& s, Text t) { return store(s.unprotected_allow, parse_choice(t, "allow", "refuse")); },
     [](const Settings& s) { return std::string(s.unprotected_allow ? "allow" : "refuse"); }, true},
    {"MPISEC_SINGLETON", "singleton", "refuse", "refuse or allow",
     [](Settings& s, Text t) { return store(s.singleton_allow, parse_choice(t, "allow", "refuse")); },
     [](const Settings& s) { return std::string(s.singleton_allow ? "allow" : "refuse"); }},
    {"MPISEC_JOB", "job", "by launcher", "a name",
     [](Settings& s, Text t) { return store(s.job, parse_name(t)); },
     [](const Settings& s) { return s.job.empty() ? "by launcher" : s.job; }, true},
    {"MPISEC_SAME_NODE", "same_node", "auto", "auto, plain, verify or seal", set_same_node,
     [](const Settings& s) { return std::string(same_node_names[static_cast<std::size_t>(s.same_node)]); },
     true},
    {"MPISEC_CONNECTIONS", "connections", "auto", "auto, authenticate or plain", set_connections,
     [](const Settings& s) {
         return std::string(connections_names[static_cast<std::size_t>(s.connections)]);
     },
     true},
    {"MPISEC_STATS", "stats", "0", "0, 1, ranks or json:PATH", set_stats,
     [](const Settings& s) { return s.stats.empty() ? "0" : s.stats; }},
    {"MPISEC_STATS_INTERVAL", "stats_interval", "0", "0 (at the end) to 1000000 seconds",
     [](Settings& s, Text t) { return store(s.stats_interval, parse_seconds(t, 1e6)); },
     [](const Settings& s) { return fmt::format("{}", s.stats_interval); }},
    {"MPISEC_TRACE", "trace", "none", "path",
     [](Settings& s, Text t) { return store(s.trace, parse_path(t)); },
     [](const Settings& s) { return s.trace.empty() ? "none" : s.trace; }},
    {"MPISEC_STALL_TIME", "stall_time", "60", "0 (never) to 1000000 seconds",
     [](Settings& s, Text t) { return store(s.stall_seconds, parse_seconds(t, 1e6)); },
     [](const Settings& s) { return fmt::format("{}", s.stall_seconds); }},
    {"MPISEC_STALL_ACTION", "stall_action", "auto", "auto, report or abort", set_stall_action,
     [](const Settings& s) {
         return std::string(stall_action_names[static_cast<std::size_t>(s.stall_action)]);
     }},
    {"MPISEC_NODE_TIME", "node_time", "20", "1 to 1000000 seconds",
     [](Settings& s, Text t) { return store(s.node_seconds, parse_seconds(t, 1e6, 1)); },
     [](const Settings& s) { return fmt::format("{}", s.node_seconds); }},
    {"MPISEC_JOIN_TIME", "join_time", "60", "1 to 1000000 seconds",
     [](Settings& s, Text t) { return store(s.join_seconds, parse_seconds(t, 1e6, 1)); },
     [](const Settings& s) { return fmt::format("{}", s.join_seconds); }},
    {"MPISEC_PIPELINE", "pipeline", "auto", "auto, on or off",
     [](Settings& s, Text t) { return set_auto_on_off(s.pipeline, t); },
     [](const Settings& s) { return show_auto_on_off(s.pipeline); }, true},
    {"MPISEC_PIPELINE_THRESHOLD", "pipeline_threshold", "auto", "auto or 1K to 256M bytes",
     [](Settings& s, Text t) { return set_size(s.threshold, t); },
     [](const Settings& s) { return show_auto_size(s.threshold); }, true},
    {"MPISEC_SEGMENT", "segment", "auto", "auto or 1K to 256M bytes",
     [](Settings& s, Text t) { return set_size(s.segment, t); },
     [](const Settings& s) { return show_auto_size(s.segment); }, true},
    {"MPISEC_WORKERS", "workers", "auto", "auto or 0 to 256 threads", set_workers,
     [](const Settings& s) { return s.workers < 0 ? "auto" : fmt::format("{}", s.workers); }},
    {"MPISEC_YIELD", "yield", "auto", "auto, on or off",
     [](Settings& s, Text t) { return set_auto_on_off(s.yield, t); },
     [](const Settings& s) { return show_auto_on_off(s.yield); }},
    {"MPISEC_PROGRESS", "progress", "calls", "calls or thread", set_progress,
     [](const Settings& s) {
         return std::string(s.progress == Settings::Progress::thread ? "thread" : "calls");
     }},
    {"MPISEC_TUNING", "tuning", "built in", "path",
     [](Settings& s, Text t) { return store(s.tuning, parse_path(t)); },
     [](const Settings& s) { return s.tuning.empty() ? "built in" : s.tuning; }},
#define COLLECTIVE(name, NAME) algorithm_setting<place_of_##name>(#name),
#include "base/collectives.def"
    {"MPISEC_REKEY_MESSAGES", "rekey_messages", "256M", "1 to 4G messages",
     [](Settings& s, Text t) { return store(s.rekey_messages, parse_size(t, 1, 1ull << 32)); },
     [](const Settings& s) { return show_size(s.rekey_messages); }, true},
    {"MPISEC_REKEY_BYTES", "rekey_bytes", "256G", "1 to 1024G bytes",
     [](Settings& s, Text t) { return store(s.rekey_bytes, parse_size(t, 1, TiB)); },
     [](const Settings& s) { return show_size(s.rekey_bytes); }, true},
    {"MPISEC_CACHE_DIR", "cache_dir", "~/.cache/mpisec", "path",
     [](Settings& s, Text t) { return store(s.cache_dir, parse_path(t)); },
     [](const Settings& s) { return s.cache_dir; }},
    {"MPISEC_PLUGIN_DIR", "", "beside the library", "path",
     [](Settings& s, Text t) { return store(s.plugin_dir, parse_path(t)); },
     [](const Settings& s) { return s.plugin_dir.empty() ? "beside the library" : s.plugin_dir; }},
    {"MPISEC_MPI", "", "found out", "mpich, abi or openmpi", set_mpi,
     [](const Settings& s) { return s.mpi.empty() ? "found out" : s.mpi; }},
};

/// Levenshtein distance, computed row by row.
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i + 1;
        for (std::size_t j = 0; j < b.size(); ++j) {
            const std::size_t above = row[j + 1];
            row[j + 1] = std::min({diagonal + (a[i] != b[j]), above + 1, row[j] + 1});
            diagonal = above;
        }
    }
    return row[b.size()];
}

std::string lower_case(std::string_view text) {
    std::string lower(text);
    for (char& c : lower)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return lower;
}

const Setting* find(std::string_view name, std::string_view Setting::*column) {
    for (const Setting& setting : table())
        if (!name.empty() && setting.*column == name) return &setting;
    return nullptr;
}

const Setting& nearest(std::string_view name, std::string_view Setting::*column) {
    const std::string plain = lower_case(name.substr(0, 64));
    const auto how_far = [&](const Setting& setting) {
        return (setting.*column).empty() ? std::numeric_limits<std::size_t>::max()
                                         : distance(plain, lower_case(setting.*column));
    };
    return *std::ranges::min_element(settings_table, {}, how_far);
}

}  // namespace

std::span<const Setting> table() {
    return settings_table;
}
const Setting* find_variable(std::string_view variable) {
    return find(variable, &Setting::variable);
}
const Setting* find_key(std::string_view key) {
    return find(key, &Setting::key);
}
const Setting* find_variable_of_key(std::string_view key) {
    for (const Setting& setting : table())
        if (setting.key.empty() && lower_case(setting.variable) == "mpisec_" + lower_case(key))
            return &setting;
    return nullptr;
}
const Setting& nearest_variable(std::string_view variable) {
    return nearest(variable, &Setting::variable);
}
const Setting& nearest_key(std::string_view key) {
    return nearest(key, &Setting::key);
}

}  // namespace mpisec::config
