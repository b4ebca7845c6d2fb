// Selection tables in TOML.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/toml.hpp"
#include "coll/selection/selection.hpp"
#include "coll/selection/selection_words.hpp"

namespace mpisec::coll {
namespace {

constexpr const char* rule_keys = "collective, algorithm, nodes, ranks_per_node, bytes and placement";

/// For error messages: where in which file.
struct Place {
    const std::string& path;
    toml::source_index line;

    Place at(const toml::node& node) const { return {path, node.source().begin.line}; }
    tl::unexpected<Error> refuse(const std::string& sentence) const {
        return fail(fmt::format("{}, line {}: {}.", path, line, sentence));
    }
};

std::string_view string_of(const toml::node& node) {
    const auto* string = node.as_string();
    return string ? std::string_view(string->get()) : std::string_view();
}

Result<Interval> parse_range(std::string_view key, const toml::node& node, const Place& place) {
    const auto refused =
        place.refuse(fmt::format("{} is [least, most], whole numbers; most may be inf", key));
    const toml::array* ends = node.as_array();
    if (!ends || ends->size() != 2) return refused;
    const auto* least = (*ends)[0].as_integer();
    const auto* most = (*ends)[1].as_integer();
    const auto* infinity = (*ends)[1].as_floating_point();
    if (!least || least->get() < 0) return refused;
    Interval range;
    range.least = static_cast<std::uint64_t>(least->get());
    if (most && most->get() >= least->get())
        range.most = static_cast<std::uint64_t>(most->get());
    else if (!infinity || !std::isinf(infinity->get()) || infinity->get() < 0)
        return refused;
    return range;
}

Result<Placement> parse_placement(const toml::node& node, const Place& place) {
    const auto* found = std::find(placements.begin(), placements.end(), string_of(node));
    if (found == placements.end()) return place.refuse(R"(placement is "block", "cyclic" or "other")");
    return static_cast<Placement>(found - placements.begin());
}

/// Sets what `key` says, except for collective and algorithm.
Result<void> parse_condition(Rule& rule, std::string_view key, const toml::node& value, const Place& place) {
    if (key == "placement") {
        const Result<Placement> placed = parse_placement(value, place);
        if (!placed) return tl::unexpected(placed.error());
        rule.placement = *placed;
        return {};
    }
    if (key != "nodes" && key != "ranks_per_node" && key != "bytes")
        return place.refuse(fmt::format("a rule has no \"{}\", but {}", key, rule_keys));
    const Result<Interval> range = parse_range(key, value, place);
    if (!range) return tl::unexpected(range.error());
    if (key == "nodes") rule.nodes = *range;
    if (key == "ranks_per_node") rule.ranks_per_node = *range;
    if (key == "bytes") rule.bytes = *range;
    return {};
}

Result<Rule> parse_rule(const toml::node& node, const Place& place) {
    const toml::table* table = node.as_table();
    if (!table) return place.refuse(fmt::format("a rule is a table of {}", rule_keys));
    const toml::node *collective = table->get("collective"), *algorithm = table->get("algorithm");
    if (!collective || !algorithm) return place.refuse("a rule needs collective and algorithm");
    const auto known = collective_by_name(string_of(*collective));
    if (!known) return place.at(*collective).refuse("collective is the name of one, as \"allgather\"");
    const Entry* entry = find_algorithm(*known, string_of(*algorithm));
    if (!entry)
        return place.at(*algorithm)
            .refuse(fmt::format("algorithm of {} is one of {}", name(*known), names_of_algorithms(*known)));
    Rule rule{*known, entry, {}, {}, {}, {}};
    for (const auto& [key, value] : *table) {
        if (&value == collective || &value == algorithm) continue;
        if (Result<void> set = parse_condition(rule, key.str(), value, place.at(value)); !set)
            return tl::unexpected(set.error());
    }
    return rule;
}

/// A size for messages, in the range that MPISEC_PIPELINE_THRESHOLD and MPISEC_SEGMENT accept.
Result<std::uint64_t> parse_size(std::string_view key, const toml::node& node, const Place& place) {
    constexpr std::int64_t least = 1 << 10, most = 256 << 20;
    const auto* size = node.as_integer();
    if (size && size->get() >= least && size->get() <= most) return static_cast<std::uint64_t>(size->get());
    return place.refuse(fmt::format("{} is {} to {} bytes", key, least, most));
}

Result<MessageRule> parse_message_rule(const toml::node& node, const Place& place) {
    const toml::table* table = node.as_table();
    const toml::node* bytes = table ? table->get("bytes") : nullptr;
    const toml::node* segment = table ? table->get("segment") : nullptr;
    if (!bytes || !segment || table->size() != 2) return place.refuse("a message rule is bytes and segment");
    const Result<Interval> range = parse_range("bytes", *bytes, place.at(*bytes));
    if (!range) return tl::unexpected(range.error());
    const auto* infinity = segment->as_floating_point();
    if (infinity && std::isinf(infinity->get()) && infinity->get() > 0)
        return MessageRule{*range, MessageRule::whole};
    const Result<std::uint64_t> size = parse_size("segment, unless inf,", *segment, place.at(*segment));
    if (!size) return tl::unexpected(size.error());
    return MessageRule{*range, *size};
}

/// The items of an array, each by `parse`.
template <class Item, class Parse>
Result<void> parse_list(std::vector<Item>& items, std::string_view key, const toml::node& list,
                        const Place& place, Parse parse) {
    const toml::array* all = list.as_array();
    if (!all) return place.refuse(fmt::format("{}s are written [[{}]]", key, key));
    for (const toml::node& one : *all) {
        Result<Item> item = parse(one, place.at(one));
        if (!item) return tl::unexpected(item.error());
        items.push_back(*item);
    }
    return {};
}

struct Tables {
    std::vector<Rule> rules;
    MessageRules messages;
};

Result<void> parse_table(Tables& tables, std::string_view key, const toml::node& value, const Place& place) {
    if (key == "rule") return parse_list(tables.rules, key, value, place, parse_rule);
    if (key == "message") return parse_list(tables.messages.rules, key, value, place, parse_message_rule);
    if (key != "threshold")
        return place.refuse(
            fmt::format("a selection table has no \"{}\", but [[rule]], [[message]] and threshold", key));
    const Result<std::uint64_t> threshold = parse_size(key, value, place);
    if (!threshold) return tl::unexpected(threshold.error());
    tables.messages.threshold = *threshold;
    return {};
}

std::string text_of(const Interval& range) {
    if (range.most == Interval().most) return fmt::format("[{}, inf]", range.least);
    return fmt::format("[{}, {}]", range.least, range.most);
}

std::string text_of(const Rule& rule) {
    std::string text = fmt::format("    {{ collective = \"{}\", algorithm = \"{}\"", name(rule.collective),
                                   rule.algorithm->name);
    if (rule.nodes != Interval()) text += fmt::format(", nodes = {}", text_of(rule.nodes));
    if (rule.ranks_per_node != Interval())
        text += fmt::format(", ranks_per_node = {}", text_of(rule.ranks_per_node));
    if (rule.bytes) text += fmt::format(", bytes = {}", text_of(*rule.bytes));
    if (rule.placement) text += fmt::format(", placement = \"{}\"", name(*rule.placement));
    return text + " },\n";
}

std::string text_of(const MessageRules& messages) {
    std::string text;
    if (messages.threshold) text += fmt::format("threshold = {}\n", messages.threshold);
    if (messages.rules.empty()) return text;
    text += "message = [\n";
    for (const MessageRule& rule : messages.rules)
        text += fmt::format("    {{ bytes = {}, segment = {} }},\n", text_of(rule.bytes),
                            rule.segment == MessageRule::whole ? "inf" : fmt::format("{}", rule.segment));
    return text + "]\n";
}

}  // namespace

Result<Selection> Selection::parse(std::string_view toml, const std::string& path) {
    // As in config/toml_source.cpp: toml++ before 3.4 is not safe with other characters.
    const auto* beyond =
        std::find_if(toml.begin(), toml.end(), [](char c) { return static_cast<signed char>(c) < 0; });
    if (beyond != toml.end())
        return fail(fmt::format("{}, line {}: only ASCII characters are accepted.", path,
                                1 + std::count(toml.begin(), beyond, '\n')));
    const toml::parse_result parsed = toml::parse(toml, std::string_view(path));
    if (!parsed)
        return fail(fmt::format("{}, line {}: this is not TOML: {}.", path,
                                parsed.error().source().begin.line, parsed.error().description()));
    Tables tables;
    for (const auto& [key, value] : parsed.table())
        if (Result<void> set = parse_table(tables, key.str(), value, {path, value.source().begin.line}); !set)
            return tl::unexpected(set.error());
    return Selection(tables.rules, tables.messages);
}

std::string Selection::text() const {
    std::string text = text_of(messages_) + "rule = [\n";
    for (const auto& of_one : rules_)
        for (const Rule& rule : of_one) text += text_of(rule);
    return text + "]\n";
}

}  // namespace mpisec::coll
