#include "coll/selection/selection.hpp"

#include <algorithm>
#include <utility>

#include "coll/selection/selection_words.hpp"

namespace mpisec::coll {
namespace {

int largest_node(const fabric::Topology& topology) {
    int most = 0;
    for (int node = 0; node < topology.nodes(); ++node) most = std::max(most, topology.node_size(node));
    return most;
}

/// Dealt in turns: places in nodes never go down from rank to rank, and each turn goes through the nodes in
/// their order.
bool dealt_in_turn(const fabric::Topology& topology) {
    for (int rank = 1; rank < topology.ranks(); ++rank) {
        const int turn = topology.local(rank), before = topology.local(rank - 1);
        if (turn < before || (turn == before && topology.node(rank) < topology.node(rank - 1))) return false;
    }
    return true;
}

}  // namespace

Placement placement(const fabric::Topology& topology) {
    if (topology.in_rank_order()) return Placement::block;
    return dealt_in_turn(topology) ? Placement::cyclic : Placement::other;
}

Selection::Selection(const std::vector<Rule>& rules, MessageRules messages) : messages_(std::move(messages)) {
    for (const Rule& rule : rules) rules_[static_cast<std::size_t>(rule.collective)].push_back(rule);
}

void Selection::complete_with(const Selection& other) {
    for (std::size_t i = 0; i < rules_.size(); ++i)
        rules_[i].insert(rules_[i].end(), other.rules_[i].begin(), other.rules_[i].end());
}

void Selection::force(Collective collective, const Entry* algorithm) {
    rules_[static_cast<std::size_t>(collective)] = {{collective, algorithm, {}, {}, {}, {}}};
}

Selection::For Selection::for_topology(Collective collective, const fabric::Topology& topology) const {
    const auto nodes = static_cast<std::uint64_t>(topology.nodes());
    const auto ranks = static_cast<std::uint64_t>(largest_node(topology));
    const Placement placed = placement(topology);
    For chosen;
    chosen.collective_ = collective;
    for (const Rule& rule : rules(collective)) {
        if (!rule.nodes.has(nodes) || !rule.ranks_per_node.has(ranks)) continue;
        if (rule.placement && *rule.placement != placed) continue;
        chosen.choices_.push_back({rule.algorithm, rule.bytes});
        chosen.by_bytes_ = chosen.by_bytes_ || rule.bytes;
    }
    chosen.choices_.push_back({&algorithms(collective).front(), {}});  // serves every call
    return chosen;
}

const Entry& Selection::For::choose(const fabric::Topology& topology, const Call& call) const {
    const auto known = by_bytes_ ? agreed_bytes(collective_, call) : std::optional<std::size_t>();
    const std::size_t bytes = known.value_or(0);
    auto serves = [&](const Choice& choice) {
        if (choice.bytes && !(known && choice.bytes->has(bytes))) return false;
        return !choice.algorithm->suits || choice.algorithm->suits(topology, call);
    };
    return *std::find_if(choices_.begin(), choices_.end() - 1, serves)->algorithm;
}

std::size_t Selection::size() const {
    std::size_t n = 0;
    for (const auto& of_one : rules_) n += of_one.size();
    return n;
}

}  // namespace mpisec::coll
