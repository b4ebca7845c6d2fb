// mpisec sim: what collectives and start-up cost in virtual time, on a cluster that need not exist.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/python_command.hpp"
#include "cli/sim_command.hpp"
#include "fabric/sim/model_file.hpp"

namespace mpisec::cli {
namespace {

std::vector<std::string> names_of_models() {
    std::vector<std::string> names;
    for (const Embedded& model : fabric::sim::named_models()) names.emplace_back(model.name);
    return names;
}

nlohmann::json to_json(const fabric::sim::Line& line) {
    return {{"alpha_us", line.alpha * 1e6},
            {"beta_ns_per_byte", line.beta * 1e9},
            {"beyond_ns_per_byte", line.beyond.value_or(line.beta) * 1e9}};
}

}  // namespace

void add_cluster_size(CLI::App& command, SimulatedCluster& cluster, int most_ranks, int most_nodes) {
    command.add_option("--ranks", cluster.ranks)->required()->check(CLI::Range(1, most_ranks));
    command.add_option("--nodes", cluster.nodes)->required()->check(CLI::Range(1, most_nodes));
    command.add_option("--placement", cluster.placement, "block (the default) or cyclic")
        ->check(CLI::IsMember({"block", "cyclic"}));
}

void add_cluster_model(CLI::App& command, SimulatedCluster& cluster) {
    command.add_option("--model", cluster.model,
                       fmt::format("{} or a TOML file with a cluster's numbers; default: a 10 Gbit/s cluster",
                                   fmt::join(names_of_models(), ", ")));
}

std::string nonsense(const SimulatedCluster& cluster) {
    if (cluster.nodes <= cluster.ranks) return {};
    return fmt::format("{} ranks cannot fill {} nodes.", cluster.ranks, cluster.nodes);
}

std::string model_name(const SimulatedCluster& cluster) {
    return cluster.model.empty() ? "built in" : cluster.model;
}

nlohmann::json model_json(const fabric::sim::ClusterModel& model) {
    nlohmann::json json = {
        {"between", to_json(model.between)}, {"inside", to_json(model.inside)},
        {"seal", to_json(model.seal)},       {"open", to_json(model.open)},
        {"copy", to_json(model.copy)},       {"shared", to_json(model.shared.value_or(model.copy))},
        {"reduce", to_json(model.reduce)},   {"barrier_us", model.barrier.value_or(model.inside.alpha) * 1e6},
        {"shared_link", model.shared_link}};
    if (std::isfinite(model.cache)) json["cache_kib"] = model.cache / 1024;
    return json;
}

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
