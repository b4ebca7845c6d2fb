// Cluster models for the simulation: one that is built in, and TOML files (docs/collectives.md).
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"
#include "fabric/sim/cluster_model.hpp"

namespace mpisec::fabric::sim {

/// Rough numbers of a small cluster of today's machines with a 10 Gbit/s link per node; of no machine in
/// particular.
ClusterModel default_model();

/// `text` over default_model(): what it does not mention stays. `path` is for error messages.
Result<ClusterModel> parse_model(std::string_view text, const std::string& path);
Result<ClusterModel> read_model(const std::string& path);

}  // namespace mpisec::fabric::sim
