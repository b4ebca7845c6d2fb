// From simulated or measured times to the rules of a selection table.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "coll/selection/selection.hpp"
#include "fabric/sim/cluster_model.hpp"

namespace mpisec::cli {

/// Clusters and sizes that are tried; each list ascends.
struct Grid {
    std::vector<int> nodes, ranks_per_node;
    std::vector<std::uint64_t> sizes;
    int most_ranks = 0;  ///< what has more ranks is left out, and ruled like the largest that has not
};

/// An algorithm keeps its place for the next size unless another is faster by more than this.
inline constexpr double worth_a_change = 0.10;

/// Seconds of one algorithm; none when it does not suit.
using Timer = std::function<Result<std::optional<double>>(coll::Collective, const coll::Entry&, int nodes,
                                                          int ranks_per_node, std::uint64_t bytes)>;

/// Each rule reaches half the way, by ratio, to the next cluster or size of the grid. Cells of the grid that
/// choose alike share their rules.
Result<std::vector<coll::Rule>> rules_for(coll::Collective collective, const Grid& grid, const Timer& timer);

/// By the simulation, in block placement.
Timer simulated_timer(const fabric::sim::ClusterModel& model);

/// What bench/mpisec_bench/tune.py has measured.
struct MeasuredTimes {
    Grid grid;
    std::set<coll::Collective> collectives;
    Timer timer;
};
/// A JSON document {"times": [{"collective", "algorithm", "nodes", "ranks_per_node", "bytes", "seconds"},
/// …]}. Algorithms that a cluster has no time of do not suit there.
Result<MeasuredTimes> read_times(const std::string& path);

}  // namespace mpisec::cli
