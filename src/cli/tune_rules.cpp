#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "cli/simulate.hpp"
#include "cli/tune.hpp"

namespace mpisec::cli {
namespace {

using coll::Collective;
using coll::Entry;
using coll::Interval;

constexpr double never = std::numeric_limits<double>::infinity();

/// What one cluster of the grid should use.
struct Cell {
    struct Step {
        Interval bytes;
        const Entry* algorithm;
        bool operator==(const Step&) const = default;
    };
    std::vector<Step> steps;
    const Entry* unknown = nullptr;  ///< for calls whose bytes not all ranks know; null: there are none
    bool operator==(const Cell&) const = default;
};

/// times[algorithm][size]
using Times = std::vector<std::vector<double>>;

std::size_t fastest(const Times& times, std::size_t size) {
    std::size_t best = 0;
    for (std::size_t a = 1; a < times.size(); ++a)
        if (times[a][size] < times[best][size]) best = a;
    return best;
}

std::vector<Cell::Step> steps_of(std::span<const Entry> entries, const Times& times,
                                 const std::vector<std::uint64_t>& sizes) {
    std::vector<Cell::Step> steps;
    std::size_t chosen = fastest(times, 0);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        const std::size_t best = fastest(times, i);
        if (times[chosen][i] > times[best][i] * (1 + worth_a_change)) chosen = best;
        if (!steps.empty() && steps.back().algorithm == &entries[chosen])
            steps.back().bytes.most = around(sizes, i).most;
        else
            steps.push_back({around(sizes, i), &entries[chosen]});
    }
    return steps;
}

bool bytes_may_be_unknown(Collective collective) {
    switch (collective) {
        case Collective::gather:
        case Collective::scatter:
        case Collective::alltoall:
        case Collective::neighbor_allgather:
        case Collective::neighbor_alltoall:
            return true;
        default:
            return false;
    }
}

/// Of the algorithms that serve calls with unequal blocks, the one that loses least over all sizes: the one with the smallest
/// mean of the logarithms of its times.
const Entry* least_regret(std::span<const Entry> entries, const Times& times,
                          const fabric::Topology& topology) {
    coll::Call unequal;
    unequal.equal_blocks = false;
    const Entry* best = nullptr;
    double least = never;
    for (std::size_t a = 0; a < entries.size(); ++a) {
        if (entries[a].suits && !entries[a].suits(topology, unequal)) continue;
        double total = 0;
        for (double time : times[a]) total += std::log(time);
        if (!best || total < least) best = &entries[a], least = total;
    }
    return best;
}

/// An algorithm that was far behind at two sizes in a row is not tried with larger ones.
Result<Times> times_of(Collective collective, const std::vector<std::uint64_t>& sizes, int nodes, int each,
                       const Timer& timer) {
    constexpr double far_behind = 4;
    const std::span<const Entry> entries = algorithms(collective);
    Times times(entries.size(), std::vector<double>(sizes.size(), never));
    std::vector<int> behind(entries.size(), 0);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        for (std::size_t a = 0; a < entries.size(); ++a) {
            if (behind[a] == 2) continue;
            const auto seconds = timer(collective, entries[a], nodes, each, sizes[i]);
            if (!seconds) return tl::unexpected(seconds.error());
            times[a][i] = seconds->value_or(never);
        }
        const double best = times[fastest(times, i)][i];
        for (std::size_t a = 0; a < entries.size(); ++a)
            if (behind[a] < 2) behind[a] = times[a][i] > far_behind * best ? behind[a] + 1 : 0;
    }
    return times;
}

Result<Cell> cell_of(Collective collective, const Grid& grid, int nodes, int each, const Timer& timer) {
    const std::span<const Entry> entries = algorithms(collective);
    const std::vector<std::uint64_t> sizes =
        has_size(collective) ? grid.sizes : std::vector<std::uint64_t>{0};
    const Result<Times> measured = times_of(collective, sizes, nodes, each, timer);
    if (!measured) return tl::unexpected(measured.error());
    const Times& times = *measured;
    Cell cell{steps_of(entries, times, sizes), nullptr};
    if (bytes_may_be_unknown(collective))
        cell.unknown = least_regret(entries, times, placed(nodes * each, nodes, "block"));
    return cell;
}

/// One column of the grid: cells by ranges of nodes, with equal neighbours merged.
using Column = std::vector<std::pair<Interval, Cell>>;

Result<Column> column_of(Collective collective, const Grid& grid, int each, const Timer& timer) {
    std::vector<int> nodes;
    for (int n : grid.nodes)
        if (nodes.empty() || n * each <= grid.most_ranks) nodes.push_back(n);
    Column column;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        Result<Cell> cell = cell_of(collective, grid, nodes[i], each, timer);
        if (!cell) return tl::unexpected(cell.error());
        if (!column.empty() && column.back().second == *cell)
            column.back().first.most = around(nodes, i).most;
        else
            column.emplace_back(around(nodes, i), *cell);
    }
    return column;
}

void add_rules(std::vector<coll::Rule>& rules, Collective collective, const Interval& ranks_per_node,
               const Column& column) {
    for (const auto& [nodes, cell] : column) {
        for (const Cell::Step& step : cell.steps) {
            coll::Rule rule{collective, step.algorithm, nodes, ranks_per_node, {}, {}};
            if (step.bytes != Interval() || cell.unknown) rule.bytes = step.bytes;
            if (rule.bytes && cell.steps.size() == 1 && cell.unknown == step.algorithm) rule.bytes.reset();
            rules.push_back(rule);
        }
        if (cell.unknown && rules.back().bytes)
            rules.push_back({collective, cell.unknown, nodes, ranks_per_node, {}, {}});
    }
}

}  // namespace

Result<std::vector<coll::Rule>> rules_for(Collective collective, const Grid& grid, const Timer& timer) {
    std::vector<std::pair<Interval, Column>> columns;
    for (std::size_t i = 0; i < grid.ranks_per_node.size(); ++i) {
        Result<Column> column = column_of(collective, grid, grid.ranks_per_node[i], timer);
        if (!column) return tl::unexpected(column.error());
        if (!columns.empty() && columns.back().second == *column)
            columns.back().first.most = around(grid.ranks_per_node, i).most;
        else
            columns.emplace_back(around(grid.ranks_per_node, i), *column);
    }
    std::vector<coll::Rule> rules;
    for (const auto& [ranks_per_node, column] : columns) add_rules(rules, collective, ranks_per_node, column);
    return rules;
}

Timer simulated_timer(const fabric::sim::ClusterModel& model) {
    return [model](Collective collective, const Entry& entry, int nodes, int each,
                   std::uint64_t bytes) -> Result<std::optional<double>> {
        const auto report =
            simulate(collective, entry, placed(nodes * each, nodes, "block"), bytes, model, 1);
        if (!report) return tl::unexpected(report.error());
        if (!*report) return std::nullopt;
        return (*report)->seconds;
    };
}

}  // namespace mpisec::cli
