// All-gathers on random clusters in the simulation, and whether each rank has the right bytes.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "coll/collective.hpp"
#include "fabric/sim/sim.hpp"

namespace mpisec::test {

using coll::Entry;
using fabric::Topology;
using fabric::sim::ClusterModel;
using fabric::sim::Options;
using fabric::sim::Report;
using Random = std::mt19937_64;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

inline int pick(Random& random, int least, int most) {
    return std::uniform_int_distribution(least, most)(random);
}

/// Any order of what happens at the same time, long data in many or few pieces.
inline Options any_options(Random& random) {
    Options options;
    options.seed = random();
    options.few_parts = options.seed % 2 == 0;
    return options;
}

/// Node of each rank.
struct Placement {
    std::string name;
    std::vector<int> node;
};

inline Placement place(const std::vector<int>& node_sizes, int kind, Random& random) {
    Placement placement{kind == 0 ? "block" : kind == 1 ? "cyclic" : "irregular", {}};
    const int largest = *std::max_element(node_sizes.begin(), node_sizes.end());
    const int nodes = static_cast<int>(node_sizes.size());
    if (kind == 1) {
        for (int turn = 0; turn < largest; ++turn)
            for (int node = 0; node < nodes; ++node)
                if (turn < node_sizes[static_cast<std::size_t>(node)]) placement.node.push_back(node);
    } else {
        for (int node = 0; node < nodes; ++node)
            placement.node.insert(placement.node.end(),
                                  static_cast<std::size_t>(node_sizes[static_cast<std::size_t>(node)]), node);
        if (kind == 2) std::shuffle(placement.node.begin(), placement.node.end(), random);
    }
    return placement;
}

/// Sizes and places of the ranks' blocks in every rank's buffer.
struct Layout {
    std::string name;
    std::vector<std::size_t> size, offset;
    std::size_t extent = 0;
};

inline Layout equal_blocks(int ranks, std::size_t bytes) {
    Layout layout{std::to_string(bytes) + " bytes each", {}, {}, 0};
    for (int rank = 0; rank < ranks; ++rank) {
        layout.size.push_back(bytes);
        layout.offset.push_back(layout.extent);
        layout.extent += bytes;
    }
    return layout;
}

/// Unequal, some empty, with gaps between some, and not in the order of ranks.
/// Of up to `most` bytes, one in six without any.
inline Layout unequal_blocks(int ranks, Random& random, int most = 40) {
    Layout layout{"unequal blocks", std::vector<std::size_t>(static_cast<std::size_t>(ranks)), {}, 0};
    layout.offset = layout.size;
    std::vector<std::size_t> order(static_cast<std::size_t>(ranks));
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    if (pick(random, 0, 1)) std::shuffle(order.begin(), order.end(), random);
    for (std::size_t rank : order) {
        layout.extent += static_cast<std::size_t>(std::max(0, pick(random, -4, 3)));
        layout.offset[rank] = layout.extent;
        layout.size[rank] = static_cast<std::size_t>(std::max(0, pick(random, -most / 5, most)));
        layout.extent += layout.size[rank];
    }
    return layout;
}

inline Layout random_layout(int ranks, Random& random) {
    constexpr std::size_t equal[] = {0, 1, 3, 16, 33};
    const int kind = pick(random, 0, 9);
    return kind < 5 ? equal_blocks(ranks, equal[kind]) : unequal_blocks(ranks, random);
}

inline ClusterModel random_model(Random& random) {
    if (pick(random, 0, 2) == 0) return {};  // all at the same time: the seed decides everything
    auto line = [&] { return fabric::sim::Line{pick(random, 0, 5) * 1.0, pick(random, 0, 5) * 0.1}; };
    return {line(), line(), line(), line(), line(), line(), pick(random, 0, 1) == 1};
}

constexpr std::uint8_t untouched = 0xEE;
inline std::uint8_t byte_of(std::size_t rank, std::size_t i) {
    return static_cast<std::uint8_t>(rank * 31 + i * 7 + 1);
}

struct Outcome {
    Report report;
    std::vector<char> right;  ///< by rank: all blocks are there, and nothing beside them was written
};

/// Of a run in which something was changed: it ended, somebody noticed, and who did not has what is right.
inline void expect_nobody_deceived(const Report& report, const std::vector<char>& right) {
    ASSERT_EQ(report.error, "");
    ASSERT_TRUE(std::count(report.failed.begin(), report.failed.end(), 1)) << "nobody noticed";
    for (std::size_t rank = 0; rank < right.size(); ++rank)
        ASSERT_TRUE(report.failed[rank] || right[rank]) << "rank " << rank << " was deceived";
}

/// Ranks of each node, of clusters on which every message is changed.
inline const std::vector<std::vector<int>>& attacked_clusters() {
    static const std::vector<std::vector<int>> clusters = {
        {1, 1},    {2, 2},       {1, 1, 1},       {2, 1, 3},
        {3, 3, 3}, {2, 2, 2, 2}, {1, 4, 2, 1, 3}, {1, 1, 1, 1, 1, 1, 1}};
    return clusters;
}

inline Outcome gather(const Entry& algorithm, const Topology& topology, const Layout& layout,
                      const ClusterModel& model, const Options& options) {
    const auto ranks = static_cast<std::size_t>(topology.ranks());
    std::vector<std::uint8_t> wanted(layout.extent, untouched);
    std::vector<std::vector<std::uint8_t>> buffers(ranks, wanted);
    std::vector<coll::Call> calls(ranks);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        for (std::size_t i = 0; i < layout.size[rank]; ++i) {
            const std::size_t at = layout.offset[rank] + i;
            wanted[at] = buffers[rank][at] = byte_of(rank, i);
        }
        calls[rank].from = {buffers[rank].data(), layout.offset, layout.size};
    }
    Outcome outcome;
    outcome.report = fabric::sim::run(
        topology, model,
        [&](fabric::Fabric& fabric) {
            return algorithm.run(fabric, calls[static_cast<std::size_t>(fabric.rank())]);
        },
        options);
    for (const auto& buffer : buffers) outcome.right.push_back(buffer == wanted);
    return outcome;
}

inline std::string describe(const std::vector<int>& node_sizes, const Placement& placement,
                            const Layout& layout, const Options& options) {
    std::ostringstream text;
    text << "nodes of";
    for (int size : node_sizes) text << ' ' << size;
    text << " ranks, " << placement.name << ", " << layout.name << ", seed " << options.seed
         << ", tampered message " << options.tamper;
    return text.str();
}

/// One test per algorithm.
class EveryAllgather : public testing::TestWithParam<Entry> {};

inline std::string test_name(const testing::TestParamInfo<Entry>& entry) {
    std::string name(entry.param.name);
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
}

}  // namespace mpisec::test

namespace mpisec::coll {
inline void PrintTo(const Entry& entry, std::ostream* to) {
    *to << entry.name;
}
}  // namespace mpisec::coll
