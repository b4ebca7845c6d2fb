// mpisec stats: what the ranks of a job wrote with MPISEC_STATS=json:PATH, per rank and summed.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "cli/say.hpp"

namespace mpisec::cli {
namespace {

using Json = nlohmann::json;

struct Kind {
    const char* key;   ///< in the files
    const char* name;  ///< for people
};
constexpr Kind kinds[] = {{"seal_small", "sealed"},
                          {"open_small", "opened"},
                          {"seal_segment", "sealed in segments"},
                          {"open_segment", "opened in segments"},
                          {"seal_collective", "sealed in collectives"},
                          {"open_collective", "opened in collectives"}};
constexpr const char* counters[] = {"messages", "bytes", "nanoseconds"};

Result<Json> read(const std::string& path) {
    std::ifstream file(path);
    Json rank = Json::parse(file, nullptr, false);
    bool fine = file && rank.is_object() && rank.contains("rank");
    for (const Kind& kind : kinds)
        for (const char* counter : counters)
            fine = fine && rank.contains(kind.key) && rank[kind.key].is_object() &&
                   rank[kind.key].contains(counter) && rank[kind.key][counter].is_number_unsigned();
    if (!fine) return fail(path + " is no file of a rank that MPISEC_STATS=json:PATH writes");
    return rank;
}

std::uint64_t total(const std::vector<Json>& ranks, const Kind& kind, const char* counter) {
    std::uint64_t counted = 0;
    for (const Json& rank : ranks) counted += rank[kind.key][counter].get<std::uint64_t>();
    return counted;
}

/// Of one rank over all kinds.
std::uint64_t total(const Json& rank, const char* counter) {
    std::uint64_t counted = 0;
    for (const Kind& kind : kinds) counted += rank[kind.key][counter].get<std::uint64_t>();
    return counted;
}

Json summary(const std::vector<Json>& ranks) {
    Json sums = Json::object();
    for (const Kind& kind : kinds)
        for (const char* counter : counters) sums[kind.key][counter] = total(ranks, kind, counter);
    return {{"ranks", ranks}, {"sum", sums}};
}

std::string text_of(const Json& rank, const char* field) {
    return rank.contains(field) && rank[field].is_string() ? rank[field].get<std::string>() : "?";
}

void print_ranks(const std::vector<Json>& ranks) {
    std::printf("%6s  %-16s %-34s %12s %16s %12s\n", "rank", "node", "crypto library", "messages", "bytes",
                "ms");
    for (const Json& rank : ranks)
        std::printf("%6d  %-16s %-34s %12llu %16llu %12.3f\n", rank["rank"].get<int>(),
                    text_of(rank, "node").c_str(), text_of(rank, "library").c_str(),
                    static_cast<unsigned long long>(total(rank, "messages")),
                    static_cast<unsigned long long>(total(rank, "bytes")),
                    static_cast<double>(total(rank, "nanoseconds")) / 1e6);
}

void print_sums(const std::vector<Json>& ranks) {
    std::printf("\n%-24s %12s %16s %12s %16s\n", "all ranks", "messages", "bytes", "ms", "ms, slowest rank");
    for (const Kind& kind : kinds) {
        std::uint64_t most = 0;
        for (const Json& rank : ranks)
            most = std::max(most, rank[kind.key]["nanoseconds"].get<std::uint64_t>());
        std::printf("%-24s %12llu %16llu %12.3f %16.3f\n", kind.name,
                    static_cast<unsigned long long>(total(ranks, kind, "messages")),
                    static_cast<unsigned long long>(total(ranks, kind, "bytes")),
                    static_cast<double>(total(ranks, kind, "nanoseconds")) / 1e6,
                    static_cast<double>(most) / 1e6);
    }
}

Result<void> show(const std::vector<std::string>& files, bool as_json) {
    std::vector<Json> ranks;
    for (const std::string& file : files) {
        auto rank = read(file);
        if (!rank) return tl::unexpected(rank.error());
        ranks.push_back(std::move(*rank));
    }
    std::ranges::sort(ranks, {}, [](const Json& rank) { return rank["rank"].get<int>(); });
    if (as_json) {
        std::printf("%s\n", summary(ranks).dump(1).c_str());
    } else {
        print_ranks(ranks);
        print_sums(ranks);
    }
    return {};
}

}  // namespace

void add_stats(CLI::App& app, Status& status) {
    CLI::App* command =
        app.add_subcommand("stats", "Sum up what the ranks of a job sealed (MPISEC_STATS=json:PATH)");
    command->footer(
        "  MPISEC_STATS=json:stats/%r mpiexec -n 64 mpisec exec ./app\n"
        "  mpisec stats stats/*\n\n"
        "A table with a line for each rank and one for each kind of work, summed over the ranks. Jobs on one "
        "node seal nothing "
        "and write no file. Times are those of sealing and opening alone; work of engine threads is not in "
        "them.");
    auto files = std::make_shared<std::vector<std::string>>();
    auto as_json = std::make_shared<bool>(false);
    command->add_option("FILES", *files, "a file of each rank")->required();
    command->add_flag("--json", *as_json, "all ranks and the sums as JSON");
    command->callback([=, &status] {
        auto done = show(*files, *as_json);
        status = done ? 0 : complain("stats", done.error());
    });
}

}  // namespace mpisec::cli
