// The commands below `mpisec sim`, and what they have in common: the cluster that they simulate.
#pragma once

#include <CLI/App.hpp>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/commands.hpp"
#include "coll/collective.hpp"
#include "fabric/sim/cluster_model.hpp"

namespace mpisec::cli {

struct SimulatedCluster {
    int ranks = 0, nodes = 0;
    std::string placement = "block";
    std::string model;  ///< empty: the built-in one
};

/// --ranks, --nodes and --placement.
void add_cluster_size(CLI::App& command, SimulatedCluster& cluster, int most_ranks, int most_nodes);
/// --model.
void add_cluster_model(CLI::App& command, SimulatedCluster& cluster);
/// What CLI11 cannot check of the size; empty when all is well.
std::string nonsense(const SimulatedCluster& cluster);
std::string model_name(const SimulatedCluster& cluster);
nlohmann::json model_json(const fabric::sim::ClusterModel& model);

void add_sim_collective(CLI::App& sim, coll::Collective collective, Status& status);  ///< sim COLLECTIVE
void add_sim_startup(CLI::App& sim, Status& status);                                  ///< sim startup

}  // namespace mpisec::cli
