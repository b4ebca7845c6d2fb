// From simulated or measured times to the rules of a selection table.
#pragma once

#include <cmath>
#include <functional>
#include <map>
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
    int most_ranks = 0;  ///< larger clusters are left out and get the rules of the largest tried
};

/// An algorithm keeps its place for the next size unless another is faster by more than this.
inline constexpr double worth_a_change = 0.10;

/// From the middle (by ratio) between the value before values[i] and values[i], to the middle between values[i] and the next;
/// `values` ascend.
template <class Number>
coll::Interval around(const std::vector<Number>& values, std::size_t i) {
    auto middle = [&](std::size_t a) {
        return static_cast<std::uint64_t>(
            std::sqrt(static_cast<double>(values[a]) * static_cast<double>(values[a + 1])));
    };
    coll::Interval range;
    if (i > 0) range.least = middle(i - 1) + 1;
    if (i + 1 < values.size()) range.most = middle(i);
    return range;
}

/// Seconds of one algorithm; none when it does not suit.
using Timer = std::function<Result<std::optional<double>>(coll::Collective, const coll::Entry&, int nodes,
                                                          int ranks_per_node, std::uint64_t bytes)>;

/// Each rule reaches half the way, by ratio, to the next cluster or size of the grid. Cells of the grid that
/// choose alike share their rules.
Result<std::vector<coll::Rule>> rules_for(coll::Collective collective, const Grid& grid, const Timer& timer);

/// Times from the simulation, in block placement.
Timer simulated_timer(const fabric::sim::ClusterModel& model);

/// A way to cut messages between two ranks. 0: as without a table.
struct MessageTrial {
    std::uint64_t threshold = 0;
    std::uint64_t segment = 0;  ///< or MessageRule::whole
    auto operator<=>(const MessageTrial&) const = default;
};
/// Time divided by the time without a table, as the mean of the measured patterns, by trial and bytes of a message.
using MessageTimes = std::map<MessageTrial, std::map<std::uint64_t, double>>;

/// Rules are made for what is faster than without a table by more than this; for the threshold the mean over all sizes counts.
inline constexpr double worth_a_rule = 0.05;
coll::MessageRules message_rules_for(const MessageTimes& times);

/// What bench/mpisec_bench/tune.py has measured.
struct MeasuredTimes {
    std::string command;  ///< that measured them; empty where the file does not say
    MessageTimes messages;
    Grid grid;
    std::set<coll::Collective> collectives;
    Timer timer;
};
/// A JSON document {"times": [{"collective", "algorithm", "nodes", "ranks_per_node", "bytes", "seconds"},
/// …], "messages": [{"threshold", "segment", "bytes", "ratio"}, …], "command": …}, where a segment of -1 is the whole rest. Algorithms
/// without a time for a cluster do not suit there.
Result<MeasuredTimes> read_times(const std::string& path);

}  // namespace mpisec::cli
