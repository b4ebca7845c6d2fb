#include "cli/profile_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "aead/throughput.hpp"
#include "cli/profile_costs.hpp"
#include "cli/simulate.hpp"
#include "coll/selection/selection_settings.hpp"
#include "config/calibration_file.hpp"
#include "fabric/sim/model_file.hpp"
#include "wire/stream.hpp"

namespace mpisec::cli {
namespace {

using Json = nlohmann::json;

constexpr const char* traffic_names[][2] = {{"point_to_point", "point-to-point"},
                                            {"partitioned", "partitioned"},
                                            {"collective", "collectives"},
                                            {"one_sided", "one-sided"}};

/// What the file says, checked: everything is read through this struct.
struct CountedRanks {
    Json all;
    std::vector<int> node;  ///< by rank
    bool shared_cpus = false, segments_of_shared_cpus = false;
    std::size_t size() const { return node.size(); }
    bool apart(std::size_t a, std::size_t b) const { return node[a] != node[b]; }
};

bool is_rank(const Json& rank) {
    if (!rank.is_object()) return false;
    for (const char* number : {"node", "cpus", "seconds"})
        if (!rank.contains(number) || !rank[number].is_number()) return false;
    for (const char* list : {"sends", "gets", "collectives", "groups"})
        if (!rank.contains(list) || !rank[list].is_array()) return false;
    return rank.contains("cpu_set") && rank["cpu_set"].is_string() && rank.contains("unpredicted") &&
           rank["unpredicted"].is_object();
}

/// As the shim decides it (shim/startup/cores.cpp): ranks outnumber the CPUs that they may use, or nodes do.
void look_at_cpus(CountedRanks& ranks) {
    std::map<std::string, std::pair<std::size_t, std::set<int>>> users;  // ranks and nodes by CPU set
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        auto& [count, nodes] = users[ranks.all[rank]["cpu_set"].get<std::string>()];
        ++count;
        nodes.insert(ranks.node[rank]);
    }
    ranks.shared_cpus = true;
    for (const Json& rank : ranks.all) {
        const auto& [count, nodes] = users[rank["cpu_set"].get<std::string>()];
        const auto cpus = rank["cpus"].get<std::size_t>();
        if (cpus > 0 && count > cpus) ranks.segments_of_shared_cpus = true;
        if (cpus == 0 || cpus > nodes.size()) ranks.shared_cpus = false;
    }
}

Result<CountedRanks> read_counted(const std::string& path) {
    std::error_code error;  // reading from a directory would throw
    if (std::filesystem::is_directory(path, error)) return fail(path + " is a directory");
    std::ifstream file(path);
    CountedRanks ranks;
    ranks.all = Json::parse(file, nullptr, false);
    if (!file || !ranks.all.is_array() || ranks.all.empty() || !std::ranges::all_of(ranks.all, is_rank))
        return fail(path + " is not a file that `mpisec profile` wrote");
    for (const Json& rank : ranks.all) ranks.node.push_back(rank["node"].get<int>());
    look_at_cpus(ranks);
    return ranks;
}

/// The numbers of a row from `first` on; none when it is not such a row.
std::optional<std::vector<std::uint64_t>> numbers(const Json& row, std::size_t first, std::size_t size) {
    if (!row.is_array() || row.size() != size) return std::nullopt;
    std::vector<std::uint64_t> values;
    for (std::size_t i = first; i < size; ++i) {
        if (!row[i].is_number_unsigned()) return std::nullopt;
        values.push_back(row[i].get<std::uint64_t>());
    }
    return values[values.size() - 2] > 0 ? std::optional(values) : std::nullopt;  // calls
}

class Predictor {
  public:
    Predictor(const CountedRanks& ranks, const config::Settings& settings, const Costs& costs,
              const coll::Selection& selection)
        : ranks_(ranks), settings_(settings), costs_(costs), selection_(selection), result_(ranks.size()) {}

    Result<std::vector<RankPrediction>> run() {
        for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
            const Json& of = ranks_.all[rank];
            for (const Json& row : of["sends"]) add_sends(rank, row);
            for (const Json& row : of["gets"]) add_gets(rank, row);
            for (const Json& row : of["collectives"])
                if (auto added = add_collective(of["groups"], row); !added)
                    return tl::unexpected(added.error());
        }
        return std::move(result_);
    }

  private:
    /// `calls` messages of `bytes` each.
    void message(const std::string& traffic, std::size_t from, std::size_t to, double calls, double bytes) {
        Work seal, open;
        const auto piece = [&](double size) {
            seal += {calls, calls * size, calls * costs_.seal(size)};
            open += {calls, calls * size, calls * costs_.open(size)};
        };
        const std::uint64_t threshold = settings_.threshold ? settings_.threshold
                                        : ranks_.segments_of_shared_cpus
                                            ? std::uint64_t{512 * 1024}
                                            : wire::automatic_first_bytes(speed());
        if (bytes <= static_cast<double>(threshold)) {
            piece(bytes);
        } else {
            const auto total = static_cast<std::uint64_t>(bytes);
            const std::uint64_t segment = settings_.segment
                                              ? settings_.segment
                                              : wire::automatic_segment_bytes(total, threshold, cutting());
            const wire::SegmentPlan plan{total, threshold, segment};
            for (std::uint64_t i = 0; i < plan.count(); ++i) piece(static_cast<double>(plan.size(i)));
        }
        result_[from].seal[traffic] += seal;
        result_[to].open[traffic] += open;
    }

    wire::Cutting cutting() const {
        if (ranks_.segments_of_shared_cpus) return wire::Cutting::shared_cores;
        return wire::cutting_for(speed());
    }
    /// The speed of the cipher, as in the job; costs are in nanoseconds.
    aead::Speed speed() const { return aead::speed_of(65536 / costs_.seal(65536) * 1e9); }

    void add_sends(std::size_t rank, const Json& row) {
        const auto values = numbers(row, 1, 5);  // world rank, bin, calls, bytes
        if (!values || !row[0].is_string() || (*values)[0] >= ranks_.size()) return;
        const auto to = static_cast<std::size_t>((*values)[0]);
        const auto calls = static_cast<double>((*values)[2]);
        if (ranks_.apart(rank, to))
            message(row[0].get<std::string>(), rank, to, calls, static_cast<double>((*values)[3]) / calls);
    }

    /// Answers to requests, which are counted as sends.
    void add_gets(std::size_t rank, const Json& row) {
        const auto values = numbers(row, 0, 4);
        if (!values || (*values)[0] >= ranks_.size()) return;
        const auto target = static_cast<std::size_t>((*values)[0]);
        const auto calls = static_cast<double>((*values)[2]);
        if (ranks_.apart(rank, target))
            message("one_sided", target, rank, calls, static_cast<double>((*values)[3]) / calls);
    }

    Result<void> add_collective(const Json& groups, const Json& row) {
        const auto values = numbers(row, 1, 5);  // group, bin, calls, bytes
        if (!values || !row[0].is_string() || (*values)[0] >= groups.size()) return {};
        const auto collective = coll::collective_by_name(row[0].get<std::string>());
        std::vector<std::size_t> members;
        std::vector<int> nodes;
        for (const Json& member : groups[(*values)[0]]) {
            if (!member.is_number_unsigned() || member.get<std::size_t>() >= ranks_.size()) return {};
            members.push_back(member.get<std::size_t>());
            nodes.push_back(ranks_.node[members.back()]);
        }
        if (!collective || std::set<int>(nodes.begin(), nodes.end()).size() < 2) return {};
        const std::uint64_t step = unit(*collective), mean = (*values)[3] / (*values)[2],
                            bytes = (mean + step - 1) / step * step;
        auto report = simulate(*collective, selection_, fabric::Topology(nodes), bytes);
        if (!report) return tl::unexpected(report.error());
        for (std::size_t i = 0; i < members.size(); ++i)
            add_metrics(members[i], static_cast<double>((*values)[2]), report->metrics[i]);
        return {};
    }

    void add_metrics(std::size_t rank, double calls, const fabric::sim::Metrics& of_one) {
        const auto work = [&](std::uint64_t count, std::uint64_t bytes, auto cost) -> Work {
            const auto n = static_cast<double>(count), all = static_cast<double>(bytes);
            return {calls * n, calls * all, count == 0 ? 0 : calls * n * cost(all / n)};
        };
        result_[rank].seal["collective"] +=
            work(of_one.seals, of_one.sealed_bytes, [&](double n) { return costs_.seal(n); });
        result_[rank].open["collective"] +=
            work(of_one.opens, of_one.opened_bytes, [&](double n) { return costs_.open(n); });
    }

    const CountedRanks& ranks_;
    const config::Settings& settings_;
    const Costs& costs_;
    const coll::Selection& selection_;
    std::vector<RankPrediction> result_;
};

std::string names_of(const aead::Selection& selection) {
    std::string names;
    for (const aead::Library* library : selection.library)
        if (library && names.find(library->name()) == std::string::npos)
            names += (names.empty() ? "" : ", ") + std::string(library->name());
    return std::string(aead::info(selection.cipher).name) + " by " + names;
}

Json json_of(const RankPrediction& rank) {
    Json json = Json::object();
    for (const auto& [direction, works] : {std::pair("seal", &rank.seal), std::pair("open", &rank.open)})
        for (const auto& [traffic, work] : *works)
            json[traffic][direction] = {
                {"messages", work.messages}, {"bytes", work.bytes}, {"nanoseconds", work.nanoseconds}};
    return json;
}

Work work_of(const std::map<std::string, Work>& works, const char* traffic) {
    const auto found = works.find(traffic);
    return found == works.end() ? Work{} : found->second;
}

}  // namespace

double RankPrediction::nanoseconds() const {
    double sum = 0;
    for (const auto* works : {&seal, &open})
        for (const auto& [traffic, work] : *works) sum += work.nanoseconds;
    return sum;
}

const RankPrediction& Prediction::slowest() const {
    return *std::ranges::max_element(ranks, {},
                                     [](const RankPrediction& rank) { return rank.nanoseconds(); });
}

RankPrediction Prediction::sum() const {
    RankPrediction all;
    for (const RankPrediction& rank : ranks) {
        for (const auto& [traffic, work] : rank.seal) all.seal[traffic] += work;
        for (const auto& [traffic, work] : rank.open) all.open[traffic] += work;
    }
    return all;
}

Result<Prediction> predict(const std::string& path, const config::Settings& settings) {
    const auto ranks = read_counted(path);
    if (!ranks) return tl::unexpected(ranks.error());
    const auto library = aead::select(settings.aead, config::calibration_path(settings));
    if (!library) return tl::unexpected(library.error());
    const auto selection =
        coll::selection_of(settings, ranks->shared_cpus ? coll::Cpus::shared : coll::Cpus::own);
    if (!selection) return tl::unexpected(selection.error());
    const Costs costs(*library);
    if (!costs.good()) return fail("the crypto library failed to seal or open");
    Prediction prediction;
    prediction.nodes = static_cast<int>(std::set<int>(ranks->node.begin(), ranks->node.end()).size());
    prediction.library = names_of(*library);
    for (const Json& rank : ranks->all) {
        prediction.seconds = std::max(prediction.seconds, rank["seconds"].get<double>());
        for (const auto& [what, count] : rank["unpredicted"].items())
            if (count.is_number_unsigned()) prediction.unpredicted[what] += count.get<std::uint64_t>();
    }
    auto predicted = Predictor(*ranks, settings, costs, *selection).run();
    if (!predicted) return tl::unexpected(predicted.error());
    prediction.ranks = std::move(*predicted);
    return prediction;
}

std::string as_text(const Prediction& prediction) {
    std::string text =
        fmt::format("{} rank{} on {} ran {:.2f} s plain. Sealed ({}, timed on this machine) they would do:\n",
                    prediction.ranks.size(), prediction.ranks.size() == 1 ? "" : "s",
                    prediction.nodes == 1 ? "one node" : fmt::format("{} nodes", prediction.nodes),
                    prediction.seconds, prediction.library);
    if (prediction.nodes < 2)
        return text + "    nothing: all ranks are on one node, where messages stay in shared memory\n";
    const RankPrediction sum = prediction.sum();
    text += fmt::format("    {:<15} {:>11} {:>15} {:>11} {:>11} {:>15} {:>11} {:>17}\n", "", "sealed",
                        "bytes", "ms", "opened", "bytes", "ms", "ms, slowest rank");
    for (const auto& [key, name] : traffic_names) {
        const Work seal = work_of(sum.seal, key), open = work_of(sum.open, key);
        double most = 0;
        for (const RankPrediction& rank : prediction.ranks)
            most = std::max(most, work_of(rank.seal, key).nanoseconds + work_of(rank.open, key).nanoseconds);
        if (seal.messages + open.messages > 0)
            text += fmt::format(
                "    {:<15} {:>11.0f} {:>15.0f} {:>11.3f} {:>11.0f} {:>15.0f} {:>11.3f} {:>17.3f}\n", name,
                seal.messages, seal.bytes, seal.nanoseconds / 1e6, open.messages, open.bytes,
                open.nanoseconds / 1e6, most / 1e6);
    }
    const double slowest = prediction.slowest().nanoseconds() / 1e9;
    text += fmt::format("    in all {:.3f} ms for the slowest rank: {:.2f} % of the run\n", slowest * 1e3,
                        prediction.seconds > 0 ? 100 * slowest / prediction.seconds : 0);
    for (const auto& [what, count] : prediction.unpredicted)
        text += fmt::format("    not in it: {} ({} calls)\n", what, count);
    return text +
           (prediction.unpredicted.empty() ? "    Not in it: start-up" : "    Not in it either: start-up") +
           " (MPI_Init), waiting for a peer that seals, cold caches. Blocks of "
           "differing sizes count as\n"
           "    their mean. `MPISEC_STATS=1 … mpisec exec` measures.\n";
}

std::string as_json(const Prediction& prediction) {
    Json ranks = Json::array();
    for (const RankPrediction& rank : prediction.ranks) ranks.push_back(json_of(rank));
    const Json all = {{"nodes", prediction.nodes},
                      {"seconds", prediction.seconds},
                      {"library", prediction.library},
                      {"ranks", ranks},
                      {"sum", json_of(prediction.sum())},
                      {"slowest_rank_nanoseconds", prediction.slowest().nanoseconds()},
                      {"unpredicted", prediction.unpredicted}};
    return all.dump(1);
}

}  // namespace mpisec::cli
