// mpisec sim: what algorithms of collectives cost on a cluster that need not exist, in virtual time.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/say.hpp"
#include "coll/collective.hpp"
#include "fabric/sim/model_file.hpp"
#include "fabric/sim/sim.hpp"

namespace mpisec::cli {
namespace {

using fabric::Topology;
using fabric::sim::ClusterModel;
using fabric::sim::Metrics;

struct SimOptions {
    int ranks = 0, nodes = 0;
    std::string placement = "block";
    std::vector<std::uint64_t> sizes = {16, 1 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20};
    std::vector<std::string> algorithms;  ///< empty: all
    std::string model;                    ///< empty: the built-in one
    std::uint64_t seed = 1;
    bool metrics = false, json = false;
};

struct Row {
    std::string_view algorithm;
    std::uint64_t bytes;
    double microseconds;
    Metrics metrics;
    bool best = false;  ///< of its size
};

Topology topology_of(const SimOptions& options) {
    std::vector<int> node;
    for (int rank = 0; rank < options.ranks; ++rank)
        node.push_back(options.placement == "cyclic"
                           ? rank % options.nodes
                           : static_cast<int>(static_cast<long>(rank) * options.nodes / options.ranks));
    return Topology(node);
}

std::vector<coll::Entry> wanted(const SimOptions& options) {
    if (options.algorithms.empty()) return coll::algorithms(coll::Collective::allgather);
    std::vector<coll::Entry> some;
    for (const std::string& name : options.algorithms)
        for (const coll::Entry& entry : coll::algorithms(coll::Collective::allgather))
            if (entry.name == name) some.push_back(entry);
    return some;
}

/// No bytes are moved: times and counts do not depend on them.
Result<Row> simulate(const coll::Entry& algorithm, const Topology& topology, std::uint64_t bytes,
                     const ClusterModel& model, std::uint64_t seed) {
    coll::Call call;
    call.from.base = fabric::sim::untouchable();
    for (int rank = 0; rank < topology.ranks(); ++rank) {
        call.from.offset.push_back(static_cast<std::size_t>(rank) * bytes);
        call.from.size.push_back(bytes);
    }
    fabric::sim::Options options;
    options.seed = seed;
    options.data = false;
    const fabric::sim::Report report = fabric::sim::run(
        topology, model, [&](fabric::Fabric& fabric) { return algorithm.run(fabric, call); }, options);
    if (!report.error.empty())
        return fail(fmt::format("{} does not work here: {}. This is a fault of MPIsec, please report it.",
                                algorithm.name, report.error));
    return Row{algorithm.name, bytes, report.seconds * 1e6, report.worst()};
}

Result<std::vector<Row>> simulate_all(const SimOptions& options, const ClusterModel& model) {
    const Topology topology = topology_of(options);
    std::vector<Row> rows;
    for (std::uint64_t bytes : options.sizes) {
        const auto first = static_cast<std::ptrdiff_t>(rows.size());
        for (const coll::Entry& algorithm : wanted(options)) {
            Result<Row> row = simulate(algorithm, topology, bytes, model, options.seed);
            if (!row) return tl::unexpected(row.error());
            rows.push_back(*row);
        }
        std::min_element(rows.begin() + first, rows.end(), [](const Row& a, const Row& b) {
            return a.microseconds < b.microseconds;
        })->best = true;
    }
    return rows;
}

std::string size_text(std::uint64_t n) {
    if (n >= 1 << 20 && n % (1 << 20) == 0) return fmt::format("{} MiB", n >> 20);
    if (n >= 1 << 10 && n % (1 << 10) == 0) return fmt::format("{} KiB", n >> 10);
    return fmt::format("{} B", n);
}

void print_times(const SimOptions& options, const std::vector<Row>& rows) {
    fmt::print("All-gather, {} ranks on {} nodes, {} placement; cluster model: {}\n", options.ranks,
               options.nodes, options.placement, options.model.empty() ? "built in" : options.model);
    fmt::print("Virtual microseconds until the last rank is done; * is the best of its size\n\n{:>10}",
               "size");
    for (const coll::Entry& algorithm : wanted(options)) fmt::print(" {:>12}", algorithm.name);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (i == 0 || rows[i].bytes != rows[i - 1].bytes) fmt::print("\n{:>10}", size_text(rows[i].bytes));
        fmt::print(" {:>11.1f}{}", rows[i].microseconds, rows[i].best ? '*' : ' ');
    }
    fmt::print("\n");
}

void print_metrics(const std::vector<Row>& rows) {
    fmt::print("\nThe most that any rank does: rounds and bytes of communication, sealing, opening\n\n");
    fmt::print("{:>10}  {:<8} {:>8} {:>14} {:>8} {:>14} {:>8} {:>14}\n", "size", "", "r_c", "s_c", "r_e",
               "s_e", "r_d", "s_d");
    for (const Row& row : rows) {
        const Metrics& m = row.metrics;
        fmt::print("{:>10}  {:<8} {:>8} {:>14} {:>8} {:>14} {:>8} {:>14}\n", size_text(row.bytes),
                   row.algorithm, m.communication_rounds, m.communicated_bytes, m.seals, m.sealed_bytes,
                   m.opens, m.opened_bytes);
    }
}

nlohmann::json to_json(const fabric::sim::Line& line) {
    return {{"alpha_us", line.alpha * 1e6}, {"beta_ns_per_byte", line.beta * 1e9}};
}

nlohmann::json to_json(const Row& row) {
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

void print_json(const SimOptions& options, const ClusterModel& model, const std::vector<Row>& rows) {
    nlohmann::json results = nlohmann::json::array();
    for (const Row& row : rows) results.push_back(to_json(row));
    const nlohmann::json document = {{"collective", "allgather"},
                                     {"ranks", options.ranks},
                                     {"nodes", options.nodes},
                                     {"placement", options.placement},
                                     {"seed", options.seed},
                                     {"model",
                                      {{"between", to_json(model.between)},
                                       {"inside", to_json(model.inside)},
                                       {"seal", to_json(model.seal)},
                                       {"open", to_json(model.open)},
                                       {"copy", to_json(model.copy)},
                                       {"reduce", to_json(model.reduce)},
                                       {"shared_link", model.shared_link}}},
                                     {"results", results}};
    fmt::print("{}\n", document.dump(1));
}

Status sim_allgather(const SimOptions& options) {
    constexpr const char* name = "sim allgather";
    if (options.nodes > options.ranks) {
        complain(name, {fmt::format("{} ranks can not fill {} nodes.", options.ranks, options.nodes)});
        return 2;
    }
    const Result<ClusterModel> model =
        options.model.empty() ? fabric::sim::default_model() : fabric::sim::read_model(options.model);
    if (!model) return complain(name, model.error());
    const Result<std::vector<Row>> rows = simulate_all(options, *model);
    if (!rows) return complain(name, rows.error());
    if (options.json) {
        print_json(options, *model, *rows);
        return 0;
    }
    print_times(options, *rows);
    if (options.metrics) print_metrics(*rows);
    return 0;
}

void add_sim_allgather(CLI::App& sim, Status& status) {
    auto options = std::make_shared<SimOptions>();
    std::vector<std::string> names;
    for (const coll::Entry& entry : coll::algorithms(coll::Collective::allgather))
        names.emplace_back(entry.name);
    CLI::App* allgather = sim.add_subcommand("allgather", "The encrypted all-gathers of docs/collectives.md");
    allgather->footer(
        "  mpisec sim allgather --ranks 64 --nodes 8\n"
        "  mpisec sim allgather --ranks 128 --nodes 8 --placement cyclic --size 16,1K,64K --metrics\n"
        "  mpisec sim allgather --ranks 64 --nodes 8 --algorithm hs1,hs2 --model cluster.toml --json");
    // Limits: the ring's messages grow with the square of the ranks, and all buffers together must be
    // countable.
    allgather->add_option("--ranks", options->ranks)->required()->check(CLI::Range(1, 4096));
    allgather->add_option("--nodes", options->nodes)->required()->check(CLI::Range(1, 4096));
    allgather->add_option("--placement", options->placement, "block (the default) or cyclic")
        ->check(CLI::IsMember({"block", "cyclic"}));
    allgather
        ->add_option("--size", options->sizes,
                     "bytes of each rank's block; K, M and G are powers of two; default: 16 to 1M")
        ->delimiter(',')
        ->transform(CLI::AsSizeValue(false))
        ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1} << 33));
    allgather->add_option("--algorithm", options->algorithms, "these only; default: all")
        ->delimiter(',')
        ->check(CLI::IsMember(names));
    allgather->add_option("--model", options->model,
                          "TOML file with the cluster's numbers; default: a 10 Gbit/s cluster");
    allgather->add_option("--seed", options->seed, "order of what happens at the same time; default: 1");
    allgather->add_flag("--metrics", options->metrics,
                        "also rounds and bytes of communication, sealing and opening");
    allgather->add_flag("--json", options->json, "one JSON document, with the metrics, instead of tables");
    allgather->callback([options, &status] { status = sim_allgather(*options); });
}

}  // namespace

void add_sim(CLI::App& app, Status& status) {
    CLI::App* sim = app.add_subcommand("sim", "Predict what collectives cost on a cluster, in virtual time");
    sim->footer(
        "The algorithms are MPIsec's own; the cluster is a model. So far no MPI job runs them "
        "(docs/collectives.md).");
    sim->require_subcommand(1);
    add_sim_allgather(*sim, status);
}

}  // namespace mpisec::cli
