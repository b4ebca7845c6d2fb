// mpisec sim COLLECTIVE: what each algorithm costs in virtual time.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/python_command.hpp"
#include "cli/say.hpp"
#include "cli/side_by_side.hpp"
#include "cli/sim_command.hpp"
#include "cli/simulate.hpp"
#include "cli/size_text.hpp"
#include "fabric/sim/model_file.hpp"

namespace mpisec::cli {
namespace {

using fabric::Topology;
using fabric::sim::ClusterModel;
using fabric::sim::Metrics;

struct SimOptions {
    coll::Collective collective{};
    SimulatedCluster cluster;
    std::vector<std::uint64_t> sizes = {16, 1 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20};
    std::vector<std::string> algorithms;  ///< empty: all
    std::uint64_t seed = 1;
    bool unencrypted = false, metrics = false, json = false;
    std::string plot;  ///< empty: none
};

struct Outcome {
    std::string_view algorithm;
    std::uint64_t bytes;
    double microseconds;
    Metrics metrics;
    bool best = false;  ///< the best for its size
};

/// More ranks are simulated only with algorithms whose messages do not grow with the square of that number.
constexpr int most_ranks_in_pairs = 4096;

std::vector<const coll::Entry*> wanted(const SimOptions& options) {
    std::vector<const coll::Entry*> some;
    for (const coll::Entry& entry : coll::algorithms(options.collective))
        if (options.algorithms.empty() && !(entry.every_pair && options.cluster.ranks > most_ranks_in_pairs))
            some.push_back(&entry);
    for (const std::string& name : options.algorithms)
        some.push_back(coll::find_algorithm(options.collective, name));
    return some;
}

/// As many simulations as have a core, and memory if each takes 128 KiB for a rank, which few need.
std::size_t simulations_at_once(int ranks) {
    const auto memory =
        static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t fit = memory / (static_cast<std::size_t>(ranks) << 17);
    return std::min(usable_cores(), std::max<std::size_t>(fit, 1));
}

/// Outcomes by size, then in the order of wanted(), without the algorithms that do not suit.
Result<std::vector<Outcome>> simulate_all(const SimOptions& options, const ClusterModel& model) {
    const Topology topology = placed(options.cluster.ranks, options.cluster.nodes, options.cluster.placement);
    const std::vector<const coll::Entry*> algorithms = wanted(options);
    std::vector<Result<std::optional<Outcome>>> outcomes(options.sizes.size() * algorithms.size());
    side_by_side(outcomes.size(), simulations_at_once(options.cluster.ranks), [&](std::size_t i) {
        const std::uint64_t bytes = options.sizes[i / algorithms.size()];
        const coll::Entry& algorithm = *algorithms[i % algorithms.size()];
        const auto report = simulate(options.collective, algorithm, topology, bytes, model, options.seed);
        if (!report)
            outcomes[i] = tl::unexpected(report.error());
        else if (*report)
            outcomes[i] = Outcome{algorithm.name, bytes, (*report)->seconds * 1e6, (*report)->worst()};
    });

    std::vector<Outcome> rows;
    auto outcome = outcomes.begin();
    for (std::size_t size = 0; size < options.sizes.size(); ++size) {
        const auto first = static_cast<std::ptrdiff_t>(rows.size());
        for (std::size_t i = 0; i < algorithms.size(); ++i, ++outcome) {
            if (!*outcome) return tl::unexpected(outcome->error());
            if (*outcome && **outcome) rows.push_back(***outcome);
        }
        const auto best = std::min_element(
            rows.begin() + first, rows.end(),
            [](const Outcome& a, const Outcome& b) { return a.microseconds < b.microseconds; });
        if (best != rows.end()) best->best = true;
    }
    return rows;
}

std::string model_name(const SimOptions& options) {
    return model_name(options.cluster) + (options.unencrypted ? ", nothing encrypted" : "");
}

void print_times(const SimOptions& options, const std::vector<Outcome>& rows) {
    fmt::print("{}, {} ranks on {} nodes, {} placement; cluster model: {}\n", name(options.collective),
               options.cluster.ranks, options.cluster.nodes, options.cluster.placement, model_name(options));
    fmt::print("Virtual microseconds until the last rank is done; * is the best of its size\n\n{:>10}",
               has_size(options.collective) ? "size" : "");
    for (const coll::Entry* algorithm : wanted(options)) fmt::print(" {:>12}", algorithm->name);
    auto row = rows.begin();
    for (std::uint64_t bytes : options.sizes) {
        fmt::print("\n{:>10}", has_size(options.collective) ? size_text(bytes) : "");
        for (const coll::Entry* algorithm : wanted(options)) {
            if (row == rows.end() || row->bytes != bytes || row->algorithm != algorithm->name) {
                fmt::print(" {:>11} ", "-");  // does not suit
                continue;
            }
            fmt::print(" {:>11.1f}{}", row->microseconds, row->best ? '*' : ' ');
            ++row;
        }
    }
    fmt::print("\n");
}

void print_metrics(const std::vector<Outcome>& rows) {
    fmt::print("\nThe most that any rank does: rounds and bytes of communication, sealing, opening\n\n");
    fmt::print("{:>10}  {:<8} {:>8} {:>14} {:>8} {:>14} {:>8} {:>14}\n", "size", "", "r_c", "s_c", "r_e",
               "s_e", "r_d", "s_d");
    for (const Outcome& row : rows) {
        const Metrics& m = row.metrics;
        fmt::print("{:>10}  {:<8} {:>8} {:>14} {:>8} {:>14} {:>8} {:>14}\n", size_text(row.bytes),
                   row.algorithm, m.communication_rounds, m.communicated_bytes, m.seals, m.sealed_bytes,
                   m.opens, m.opened_bytes);
    }
}

nlohmann::json to_json(const Outcome& row) {
    const Metrics& m = row.metrics;
    return {{"algorithm", row.algorithm},
            {"bytes", row.bytes},
            {"microseconds", row.microseconds},
            {"best", row.best},
            {"r_c", m.communication_rounds},
            {"s_c", m.communicated_bytes},
            {"r_e", m.seals},
            {"s_e", m.sealed_bytes},
            {"r_d", m.opens},
            {"s_d", m.opened_bytes}};
}

std::string json_text(const SimOptions& options, const ClusterModel& model,
                      const std::vector<Outcome>& rows) {
    nlohmann::json results = nlohmann::json::array();
    for (const Outcome& row : rows) results.push_back(to_json(row));
    const nlohmann::json document = {{"collective", name(options.collective)},
                                     {"ranks", options.cluster.ranks},
                                     {"nodes", options.cluster.nodes},
                                     {"placement", options.cluster.placement},
                                     {"size", meaning_of_size(options.collective)},
                                     {"seed", options.seed},
                                     {"model_name", model_name(options)},
                                     {"model", model_json(model)},
                                     {"results", results}};
    return document.dump(1) + "\n";
}

/// Becomes the program that draws the plot (bench/mpisec_bench/plot_sim.py), with the document as its input.
Error draw(const std::string& document, const std::string& file) {
    std::FILE* input = std::tmpfile();
    if (!input || std::fputs(document.c_str(), input) < 0 || std::fflush(input) != 0 ||
        std::fseek(input, 0, SEEK_SET) != 0 || dup2(fileno(input), STDIN_FILENO) < 0)
        return {"cannot write a temporary file"};
    return become_python("mpisec_bench.plot_sim", {"-o", file});
}

/// What CLI11 cannot check; empty when all is well.
std::string nonsense(const SimOptions& options) {
    if (std::string why = nonsense(options.cluster); !why.empty()) return why;
    for (const std::string& name : options.algorithms)
        if (coll::find_algorithm(options.collective, name)->every_pair &&
            options.cluster.ranks > most_ranks_in_pairs)
            return fmt::format(
                "With {} any two ranks have messages for each other: too many to simulate for more than {} "
                "ranks.",
                name, most_ranks_in_pairs);
    for (std::uint64_t bytes : options.sizes)
        if (bytes % unit(options.collective) != 0)
            return fmt::format("{} combines elements of {} bytes: {} bytes are not whole elements.",
                               name(options.collective), unit(options.collective), bytes);
    return {};
}

Status sim_collective(const SimOptions& options) {
    const std::string command = fmt::format("sim {}", name(options.collective));
    if (const std::string why = nonsense(options); !why.empty()) {
        complain(command.c_str(), {why});
        return 2;
    }
    Result<ClusterModel> model = fabric::sim::read_model(options.cluster.model);
    if (!model) return complain(command.c_str(), model.error());
    if (options.unencrypted) model->seal = model->open = {};
    const Result<std::vector<Outcome>> rows = simulate_all(options, *model);
    if (!rows) return complain(command.c_str(), rows.error());
    if (!options.plot.empty())
        return complain(command.c_str(), draw(json_text(options, *model, *rows), options.plot));
    if (options.json) {
        fmt::print("{}", json_text(options, *model, *rows));
        return 0;
    }
    print_times(options, *rows);
    if (options.metrics) print_metrics(*rows);
    return 0;
}

}  // namespace

void add_sim_collective(CLI::App& sim, coll::Collective collective, Status& status) {
    auto options = std::make_shared<SimOptions>();
    options->collective = collective;
    std::vector<std::string> names;
    for (const coll::Entry& entry : coll::algorithms(collective)) names.emplace_back(entry.name);
    std::vector<std::string> accepted = names;
    for (const coll::Entry& entry : coll::algorithms(collective))
        if (!entry.alias.empty()) accepted.emplace_back(entry.alias);
    const std::string name(coll::name(collective));
    CLI::App* command = sim.add_subcommand(name, fmt::format("Time of {}", fmt::join(names, ", ")));
    if (std::string alias = name; alias.find('_') != std::string::npos) {
        std::replace(alias.begin(), alias.end(), '_', '-');
        command->alias(alias);
    }
    command->footer(
        fmt::format("  mpisec sim {0} --ranks 64 --nodes 8\n"
                    "  mpisec sim {0} --ranks 128 --nodes 8 --model noleland --metrics\n"
                    "  mpisec sim {0} --ranks 64 --nodes 8 --algorithm {1} --model cluster.toml "
                    "--json",
                    name, names.back()));
    // The limits are for time and memory, and all buffers together must be countable.
    add_cluster_size(*command, options->cluster, 65536, 65536);
    if (has_size(collective))
        command
            ->add_option("--size", options->sizes,
                         fmt::format("{}; K, M and G are powers of two; default: 16 to 1M",
                                     meaning_of_size(collective)))
            ->delimiter(',')
            ->transform(CLI::AsSizeValue(false))
            ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1} << 33));
    else
        options->sizes = {0};
    command->add_option("--algorithm", options->algorithms, "these only; default: all")
        ->delimiter(',')
        ->check(CLI::IsMember(accepted).description(fmt::format("{{{}}}", fmt::join(names, ","))));
    add_cluster_model(*command, options->cluster);
    command->add_option("--seed", options->seed, "order of what happens at the same time; default: 1");
    command->add_flag("--unencrypted", options->unencrypted, "sealing and opening cost nothing");
    command->add_flag("--metrics", options->metrics,
                      "also rounds and bytes of communication, sealing and opening");
    command->add_flag("--json", options->json, "one JSON document, with the metrics, instead of tables");
    if (has_size(collective))
        command->add_option("--plot", options->plot,
                            "draws time against size into this file, .svg or .png (needs matplotlib)");
    command->callback([options, &status] { status = sim_collective(*options); });
}

}  // namespace mpisec::cli
