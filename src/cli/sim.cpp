// mpisec sim: what algorithms of collectives cost in virtual time, on a cluster that need not exist.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/python_command.hpp"
#include "cli/say.hpp"
#include "cli/side_by_side.hpp"
#include "cli/sim_startup.hpp"
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
    int ranks = 0, nodes = 0;
    std::string placement = "block";
    std::vector<std::uint64_t> sizes = {16, 1 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20};
    std::vector<std::string> algorithms;  ///< empty: all
    std::string model;                    ///< empty: the built-in one
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
        if (options.algorithms.empty() && !(entry.every_pair && options.ranks > most_ranks_in_pairs))
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
    const Topology topology = placed(options.ranks, options.nodes, options.placement);
    const std::vector<const coll::Entry*> algorithms = wanted(options);
    std::vector<Result<std::optional<Outcome>>> outcomes(options.sizes.size() * algorithms.size());
    side_by_side(outcomes.size(), simulations_at_once(options.ranks), [&](std::size_t i) {
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
    return (options.model.empty() ? "built in" : options.model) +
           (options.unencrypted ? ", nothing encrypted" : "");
}

void print_times(const SimOptions& options, const std::vector<Outcome>& rows) {
    fmt::print("{}, {} ranks on {} nodes, {} placement; cluster model: {}\n", name(options.collective),
               options.ranks, options.nodes, options.placement, model_name(options));
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

nlohmann::json to_json(const fabric::sim::Line& line) {
    return {{"alpha_us", line.alpha * 1e6},
            {"beta_ns_per_byte", line.beta * 1e9},
            {"beyond_ns_per_byte", line.beyond.value_or(line.beta) * 1e9}};
}

nlohmann::json to_json(const ClusterModel& model) {
    nlohmann::json json = {
        {"between", to_json(model.between)}, {"inside", to_json(model.inside)},
        {"seal", to_json(model.seal)},       {"open", to_json(model.open)},
        {"copy", to_json(model.copy)},       {"shared", to_json(model.shared.value_or(model.copy))},
        {"reduce", to_json(model.reduce)},   {"barrier_us", model.barrier.value_or(model.inside.alpha) * 1e6},
        {"shared_link", model.shared_link}};
    if (std::isfinite(model.cache)) json["cache_kib"] = model.cache / 1024;
    return json;
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
                                     {"ranks", options.ranks},
                                     {"nodes", options.nodes},
                                     {"placement", options.placement},
                                     {"size", meaning_of_size(options.collective)},
                                     {"seed", options.seed},
                                     {"model_name", model_name(options)},
                                     {"model", to_json(model)},
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
    if (options.nodes > options.ranks)
        return fmt::format("{} ranks cannot fill {} nodes.", options.ranks, options.nodes);
    for (const std::string& name : options.algorithms)
        if (coll::find_algorithm(options.collective, name)->every_pair && options.ranks > most_ranks_in_pairs)
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
    Result<ClusterModel> model = fabric::sim::read_model(options.model);
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

std::vector<std::string> names_of_models() {
    std::vector<std::string> names;
    for (const Embedded& model : fabric::sim::named_models()) names.emplace_back(model.name);
    return names;
}

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
    command->add_option("--ranks", options->ranks)->required()->check(CLI::Range(1, 65536));
    command->add_option("--nodes", options->nodes)->required()->check(CLI::Range(1, 65536));
    command->add_option("--placement", options->placement, "block (the default) or cyclic")
        ->check(CLI::IsMember({"block", "cyclic"}));
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
    command->add_option(
        "--model", options->model,
        fmt::format("{} or a TOML file with a cluster's numbers; default: a 10 Gbit/s cluster",
                    fmt::join(names_of_models(), ", ")));
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

struct StartupOptions {
    int ranks = 0, nodes = 0;
    std::string placement = "block";
    std::string model;
    double handshake_us = 0;  ///< 0: measured here
    bool json = false;
};

NodeTraffic median_of(std::vector<NodeTraffic> traffic) {
    NodeTraffic median;
    for (auto member : {&NodeTraffic::sent, &NodeTraffic::received}) {
        std::ranges::nth_element(traffic, traffic.begin() + static_cast<std::ptrdiff_t>(traffic.size() / 2),
                                 {}, member);
        median.*member = traffic[traffic.size() / 2].*member;
    }
    return median;
}

void print_startup(const StartupOptions& options, const StartupReport& report, double handshake) {
    const NodeTraffic median = median_of(report.traffic), first = report.traffic.front();
    fmt::print(
        "Start-up of {} ranks on {} nodes, {} placement; cluster model: {}; a handshake computes for {:.0f} "
        "µs\n\n",
        options.ranks, options.nodes, options.placement, options.model.empty() ? "built in" : options.model,
        handshake * 1e6);
    fmt::print("{:<44} {:>14}\n", "messages one after the other", report.rounds);
    fmt::print("{:<44} {:>14}\n", "bytes of all cards", report.card_bytes);
    fmt::print("{:<44} {:>14}\n", "bytes that the median node receives, sends",
               fmt::format("{}, {}", median.received, median.sent));
    fmt::print("{:<44} {:>14}\n", "bytes that the first node receives, sends",
               fmt::format("{}, {}", first.received, first.sent));
    fmt::print("{:<44} {:>14}\n", "bytes of memory per rank: meanwhile, lasting",
               fmt::format("{}, {}", report.bytes_while_starting, report.lasting_bytes));
    const auto per_node = static_cast<std::uint64_t>((options.ranks + options.nodes - 1) / options.nodes);
    fmt::print(
        "{:<44} {:>14}\n", "of all ranks of a node",
        fmt::format("{}, {}", report.bytes_while_starting * per_node, report.lasting_bytes * per_node));
    fmt::print("{:<44} {:>14}\n", "virtual ms: cards, in all",
               fmt::format("{:.2f}, {:.2f}", report.cards_seconds * 1e3, report.seconds * 1e3));
}

nlohmann::json to_json(const NodeTraffic& traffic) {
    return {{"received", traffic.received}, {"sent", traffic.sent}};
}

Status sim_startup(const StartupOptions& options) {
    if (options.nodes > options.ranks) {
        complain("sim startup",
                 {fmt::format("{} ranks cannot fill {} nodes.", options.ranks, options.nodes)});
        return 2;
    }
    const Result<ClusterModel> model = fabric::sim::read_model(options.model);
    if (!model) return complain("sim startup", model.error());
    const double handshake = options.handshake_us > 0 ? options.handshake_us * 1e-6 : time_of_handshake();
    const StartupReport report =
        simulate_startup(placed(options.ranks, options.nodes, options.placement), *model, handshake);
    if (!options.json) {
        print_startup(options, report, handshake);
        return 0;
    }
    const nlohmann::json document = {{"ranks", options.ranks},
                                     {"nodes", options.nodes},
                                     {"placement", options.placement},
                                     {"model", to_json(*model)},
                                     {"handshake_us", handshake * 1e6},
                                     {"rounds", report.rounds},
                                     {"card_bytes", report.card_bytes},
                                     {"median_node", to_json(median_of(report.traffic))},
                                     {"first_node", to_json(report.traffic.front())},
                                     {"rank_bytes_meanwhile", report.bytes_while_starting},
                                     {"rank_bytes_lasting", report.lasting_bytes},
                                     {"cards_ms", report.cards_seconds * 1e3},
                                     {"ms", report.seconds * 1e3}};
    fmt::print("{}\n", document.dump(1));
    return 0;
}

void add_sim_startup(CLI::App& sim, Status& status) {
    auto options = std::make_shared<StartupOptions>();
    CLI::App* command = sim.add_subcommand("startup", "What MPI_Init's start-up sends, keeps and takes");
    command->footer("  mpisec sim startup --ranks 1048576 --nodes 8192");
    command->add_option("--ranks", options->ranks)->required()->check(CLI::Range(1, 1 << 24));
    command->add_option("--nodes", options->nodes)->required()->check(CLI::Range(1, 1 << 20));
    command->add_option("--placement", options->placement, "block (the default) or cyclic")
        ->check(CLI::IsMember({"block", "cyclic"}));
    command->add_option(
        "--model", options->model,
        fmt::format("{} or a TOML file with a cluster's numbers; default: a 10 Gbit/s cluster",
                    fmt::join(names_of_models(), ", ")));
    command
        ->add_option("--handshake", options->handshake_us,
                     "µs that both sides of a handshake compute; default: measured here")
        ->check(CLI::PositiveNumber);
    command->add_flag("--json", options->json, "one JSON document");
    command->callback([options, &status] { status = sim_startup(*options); });
}

}  // namespace

void add_sim(CLI::App& app, Status& status) {
    CLI::App* sim =
        app.add_subcommand("sim", "Predict what collectives and start-up cost on a cluster, in virtual time");
    sim->footer("The algorithms are MPIsec's own; the cluster is a model (docs/collectives.md).");
    sim->require_subcommand(1);
    for (int i = 0; i < coll::collectives; ++i)
        add_sim_collective(*sim, static_cast<coll::Collective>(i), status);
    add_sim_startup(*sim, status);
    CLI::App* compare = sim->add_subcommand(
        "compare-paper", "The all-gather paper's measurements beside the simulation of its clusters");
    run_in_python(*compare, status, "mpisec_bench.predict", {});
}

}  // namespace mpisec::cli
