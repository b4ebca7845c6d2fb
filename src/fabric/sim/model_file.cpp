#include "fabric/sim/model_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <memory>
#include <utility>

#include "base/toml.hpp"

namespace mpisec::fabric::sim {
namespace {

constexpr const char* line_keys = "alpha_us and one of beta_ns_per_byte, gbit_per_s, gbyte_per_s";
constexpr const char* model_keys =
    "between, inside, seal, open, copy, shared, reduce, shared_link, barrier_us and cache_kib";

struct Place {
    const std::string& path;
    toml::source_index line;
    tl::unexpected<Error> refuse(const std::string& sentence) const {
        return fail(fmt::format("{}, line {}: {}.", path, line, sentence));
    }
};

/// None when it is not a number, not finite, or negative.
std::optional<double> number_of(const toml::node& node) {
    const auto number = node.is_number() ? node.value<double>() : std::nullopt;
    return number && std::isfinite(*number) && *number >= 0 ? number : std::nullopt;
}

Result<Line> parse_line(std::string_view name, const toml::node& node, const Place& place) {
    const toml::table* table = node.as_table();
    if (!table) return place.refuse(fmt::format("{} is a table of {}", name, line_keys));
    Line line;
    int alphas = 0, betas = 0;
    for (const auto& [key, value] : *table) {
        const Place here{place.path, value.source().begin.line};
        const bool alpha = key == "alpha_us", beta = key == "beta_ns_per_byte", gbit = key == "gbit_per_s",
                   gbyte = key == "gbyte_per_s", beyond = key == "beyond_ns_per_byte";
        if (!alpha && !beta && !gbit && !gbyte && !beyond)
            return here.refuse(
                fmt::format("{} has no \"{}\", but {}; also beyond_ns_per_byte", name, key.str(), line_keys));
        const auto number = number_of(value);
        const bool rate = gbit || gbyte;
        if (!number || (rate && *number == 0))
            return here.refuse(fmt::format("{} of {} is a number {}", key.str(), name,
                                           rate ? "greater than 0" : "that is not negative"));
        if (alpha) line.alpha = *number * 1e-6;
        if (beta) line.beta = *number * 1e-9;
        if (gbit) line.beta = 8e-9 / *number;
        if (gbyte) line.beta = 1e-9 / *number;
        if (beyond)
            line.beyond = *number * 1e-9;
        else
            ++(alpha ? alphas : betas);
    }
    if (alphas != 1 || betas != 1) return place.refuse(fmt::format("{} needs {}", name, line_keys));
    return line;
}

}  // namespace

ClusterModel default_model() {
    ClusterModel model;
    model.between = {15e-6, 8e-9 / 10};  // 10 Gbit/s
    model.inside = {0.5e-6, 1e-9 / 5};
    model.seal = {0.15e-6, 1e-9 / 10};  // AES-128-GCM with wide vector instructions
    model.open = {0.15e-6, 1e-9 / 10};
    model.copy = {0.05e-6, 1e-9 / 10};
    model.reduce = {0.05e-6, 1e-9 / 5};
    model.shared_link = true;
    return model;
}

Result<ClusterModel> parse_model(std::string_view text, const std::string& path) {
    // As in config/toml_source.cpp: toml++ before 3.4 is not safe with other characters.
    const auto* beyond =
        std::find_if(text.begin(), text.end(), [](char c) { return static_cast<signed char>(c) < 0; });
    if (beyond != text.end())
        return fail(fmt::format("{}, line {}: only ASCII characters are accepted.", path,
                                1 + std::count(text.begin(), beyond, '\n')));
    const toml::parse_result parsed = toml::parse(text, std::string_view(path));
    if (!parsed)
        return fail(fmt::format("{}, line {}: this is not TOML: {}.", path,
                                parsed.error().source().begin.line, parsed.error().description()));
    ClusterModel model = default_model();
    const std::pair<const char*, Line*> lines[] = {
        {"between", &model.between}, {"inside", &model.inside}, {"seal", &model.seal}, {"open", &model.open},
        {"copy", &model.copy},       {"reduce", &model.reduce}, {"shared", nullptr}};
    for (const auto& [key, value] : parsed.table()) {
        const Place place{path, value.source().begin.line};
        if (key == "shared_link") {
            if (!value.is_boolean()) return place.refuse("shared_link is true or false");
            model.shared_link = *value.value<bool>();
            continue;
        }
        if (key == "barrier_us" || key == "cache_kib") {
            const auto number = number_of(value);
            if (!number) return place.refuse(fmt::format("{} is a number that is not negative", key.str()));
            if (key == "cache_kib")
                model.cache = *number * 1024;
            else
                model.barrier = *number * 1e-6;
            continue;
        }
        const auto* entry = std::find_if(std::begin(lines), std::end(lines),
                                         [&key = key](const auto& line) { return key == line.first; });
        if (entry == std::end(lines))
            return place.refuse(fmt::format("a cluster model has no \"{}\", but {}", key.str(), model_keys));
        const Result<Line> line = parse_line(key.str(), value, place);
        if (!line) return tl::unexpected(line.error());
        if (entry->second)
            *entry->second = *line;
        else
            model.shared = *line;
    }
    return model;
}

Result<ClusterModel> read_model(const std::string& path) {
    if (path.empty()) return default_model();
    for (const Embedded& model : named_models())
        if (path == model.name) return parse_model(model.text, path);
    std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
    std::string text;
    char some[4096];
    while (const std::size_t n = file ? std::fread(some, 1, sizeof some, file.get()) : 0)
        text.append(some, n);
    if (!file || std::ferror(file.get()))
        return fail(fmt::format("cannot read the cluster model {}: {}.", path, std::strerror(errno)));
    return parse_model(text, path);
}

}  // namespace mpisec::fabric::sim
