// Cluster models for the simulation: a built-in one, named ones, and TOML files (docs/collectives.md).
#pragma once

#include <string>
#include <string_view>

#include "base/embedded.hpp"
#include "base/error.hpp"
#include "fabric/sim/cluster_model.hpp"

namespace mpisec::fabric::sim {

/// Rough numbers of a small cluster of today's machines with a 10 Gbit/s link per node; they describe no particular machine.
ClusterModel default_model();

/// Reads `text` over default_model(): what it does not mention stays. `path` is for error messages.
Result<ClusterModel> parse_model(std::string_view text, const std::string& path);
/// The named model of this name, else the one in this file; default_model() when it is empty.
Result<ClusterModel> read_model(const std::string& name_or_path);

/// Models that are fitted to published measurements (models/, docs/collectives.md).
std::span<const Embedded> named_models();

}  // namespace mpisec::fabric::sim
