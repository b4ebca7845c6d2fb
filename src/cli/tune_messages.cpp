// From measured messages to the rules of a selection table that cut them.
#include <algorithm>
#include <cmath>
#include <limits>

#include "cli/tune.hpp"

namespace mpisec::cli {
namespace {

using coll::MessageRule;

/// The trials of one threshold: ratios by segment and bytes.
using Ways = std::map<std::uint64_t, std::map<std::uint64_t, double>>;

double ratio_of(const Ways& ways, std::uint64_t segment, std::uint64_t bytes) {
    const auto way = ways.find(segment);
    if (way == ways.end()) return std::numeric_limits<double>::infinity();
    const auto found = way->second.find(bytes);
    return found == way->second.end() ? std::numeric_limits<double>::infinity() : found->second;
}

/// The best segment, but 0, which needs no rule of its own, unless another one is faster by more than a rule is worth.
std::uint64_t segment_for(const Ways& ways, std::uint64_t bytes) {
    std::uint64_t best = 0;
    for (const auto& [segment, ratios] : ways)
        if (ratio_of(ways, segment, bytes) < ratio_of(ways, best, bytes)) best = segment;
    return ratio_of(ways, best, bytes) * (1 + worth_a_rule) < ratio_of(ways, 0, bytes) ? best : 0;
}

/// Mean of the logarithms of the ratios that the rules would achieve.
double cost_of(const Ways& ways, const std::vector<std::uint64_t>& sizes) {
    double sum = 0;
    for (std::uint64_t bytes : sizes) sum += std::log(ratio_of(ways, segment_for(ways, bytes), bytes));
    return sum / static_cast<double>(sizes.size());
}

}  // namespace

coll::MessageRules message_rules_for(const MessageTimes& times) {
    std::map<std::uint64_t, Ways> by_threshold;
    std::set<std::uint64_t> all_sizes;
    for (const auto& [trial, ratios] : times) {
        by_threshold[trial.threshold][trial.segment] = ratios;
        for (const auto& [bytes, ratio] : ratios) all_sizes.insert(bytes);
    }
    const std::vector<std::uint64_t> sizes(all_sizes.begin(), all_sizes.end());
    coll::MessageRules found;
    if (sizes.empty()) return found;
    for (std::uint64_t bytes : sizes) by_threshold[0][0][bytes] = 1;
    double least = cost_of(by_threshold[0], sizes) - std::log(1 + worth_a_rule);
    for (const auto& [threshold, ways] : by_threshold)
        if (const double cost = cost_of(ways, sizes); threshold != 0 && cost < least)
            least = cost, found.threshold = threshold;
    const Ways& ways = by_threshold[found.threshold];
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        if (sizes[i] <= found.threshold) continue;  // they travel whole
        const std::uint64_t segment = segment_for(ways, sizes[i]);
        const coll::Interval bytes = around(sizes, i);
        const bool goes_on = !found.rules.empty() && found.rules.back().segment == segment &&
                             found.rules.back().bytes.most + 1 == bytes.least;
        if (goes_on)
            found.rules.back().bytes.most = bytes.most;
        else if (segment != 0)
            found.rules.push_back({bytes, segment});
    }
    return found;
}

}  // namespace mpisec::cli
