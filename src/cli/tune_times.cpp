#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "cli/simulate.hpp"
#include "cli/tune.hpp"

namespace mpisec::cli {
namespace {

/// Algorithm, nodes, ranks per node, bytes; algorithms are known by their place in the registry.
using Measured = std::map<std::tuple<const coll::Entry*, int, int, std::uint64_t>, double>;

constexpr int most = 4096;  // nodes, and ranks on each, as the options of mpisec tune allow

template <class Number>
void add(std::vector<Number>& ascending, Number value) {
    const auto at = std::lower_bound(ascending.begin(), ascending.end(), value);
    if (at == ascending.end() || *at != value) ascending.insert(at, value);
}

/// All patterns of one trial have the same weight.
void read_messages(const nlohmann::json& rows, MessageTimes& messages) {
    std::map<MessageTrial, std::map<std::uint64_t, std::vector<double>>> found;
    for (const auto& row : rows) {
        const auto segment = row.at("segment").get<std::int64_t>();
        const MessageTrial trial{
            row.at("threshold").get<std::uint64_t>(),
            segment < 0 ? coll::MessageRule::whole : static_cast<std::uint64_t>(segment)};
        found[trial][row.at("bytes").get<std::uint64_t>()].push_back(row.at("ratio"));
    }
    for (const auto& [trial, by_bytes] : found)
        for (const auto& [bytes, ratios] : by_bytes) {
            double sum = 0;
            for (double ratio : ratios) sum += std::log(ratio);
            messages[trial][bytes] = std::exp(sum / static_cast<double>(ratios.size()));
        }
}

}  // namespace

Result<MeasuredTimes> read_times(const std::string& path) {
    std::error_code ignored;  // reading from a directory would throw
    std::ifstream file(path);
    if (!file || std::filesystem::is_directory(path, ignored))
        return fail("cannot read the times in " + path + ".");
    MeasuredTimes read;
    Measured measured;
    try {
        const nlohmann::json document = nlohmann::json::parse(file);
        for (const auto& row : document.at("times")) {
            const auto collective_name = row.at("collective").get<std::string>();
            const auto algorithm_name = row.at("algorithm").get<std::string>();
            const auto collective = coll::collective_by_name(collective_name);
            const coll::Entry* algorithm =
                collective ? coll::find_algorithm(*collective, algorithm_name) : nullptr;
            if (!algorithm)
                return fail(
                    fmt::format("{}: there is no algorithm {} of {}; was it measured with another "
                                "version of MPIsec? Measure again.",
                                path, algorithm_name, collective_name));
            const int nodes = row.at("nodes"), each = row.at("ranks_per_node");
            const std::int64_t bytes = has_size(*collective) ? row.at("bytes").get<std::int64_t>() : 0;
            const double seconds = row.at("seconds");
            if (nodes < 1 || nodes > most || each < 1 || each > most || bytes < 0 || !(seconds > 0))
                return fail(
                    fmt::format("{}: a row of {} has {} nodes, {} ranks per node, {} bytes and {} seconds: "
                                "there are 1 to {} nodes and ranks, and the rest is greater than 0.",
                                path, collective_name, nodes, each, bytes, seconds, most));
            measured[{algorithm, nodes, each, static_cast<std::uint64_t>(bytes)}] = seconds;
            read.collectives.insert(*collective);
            add(read.grid.nodes, nodes);
            add(read.grid.ranks_per_node, each);
            if (bytes > 0) add(read.grid.sizes, static_cast<std::uint64_t>(bytes));
            read.grid.most_ranks = std::max(read.grid.most_ranks, nodes * each);
        }
        read.command = document.value("command", "");
        for (char& c : read.command)
            if (c < ' ') c = ' ';  // it becomes a comment of one line
        if (document.contains("messages")) read_messages(document.at("messages"), read.messages);
    } catch (const nlohmann::json::exception& error) {
        return fail(fmt::format("{} holds no times of mpisec tune: {}", path, error.what()));
    }
    if (measured.empty() && read.messages.empty()) return fail(path + " holds no times.");
    read.timer = [measured = std::move(measured)](coll::Collective, const coll::Entry& entry, int nodes,
                                                  int each,
                                                  std::uint64_t bytes) -> Result<std::optional<double>> {
        const auto found = measured.find({&entry, nodes, each, bytes});
        if (found == measured.end()) return std::nullopt;
        return found->second;
    };
    return read;
}

}  // namespace mpisec::cli
