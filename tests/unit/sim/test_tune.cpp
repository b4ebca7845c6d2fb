// From times to rules: who is chosen where, how far a rule reaches, and what is merged.
#include <gtest/gtest.h>

#include "cli/tune.hpp"
#include "fabric/sim/model_file.hpp"

namespace mpisec::cli {
namespace {

using coll::Collective;
using coll::Entry;
using coll::Selection;

const Grid grid{{2, 8}, {1, 4}, {16, 256, 4096}, 512};

/// Seconds by the algorithm's name; others take 3.
using Fastest = std::function<std::string(int nodes, int each, std::uint64_t bytes)>;
Timer timer_of(const Fastest& fastest) {
    return [fastest](Collective, const Entry& entry, int nodes, int each,
                     std::uint64_t bytes) -> Result<std::optional<double>> {
        return entry.name == fastest(nodes, each, bytes) ? 1.0 : 3.0;
    };
}

std::string table(Collective collective, const Timer& timer, const Grid& of = grid) {
    const auto rules = rules_for(collective, of, timer);
    EXPECT_TRUE(rules) << rules.error().message;
    return rules ? Selection(*rules).text() : "";
}

TEST(TuneRules, OneRuleWhenOneIsAlwaysBest) {
    EXPECT_EQ(table(Collective::allgather, timer_of([](int, int, std::uint64_t) { return "hs1"; })),
              "rule = [\n    { collective = \"allgather\", algorithm = \"hs1\" },\n]\n");
}

TEST(TuneRules, ReachHalfTheWayByRatio) {
    EXPECT_EQ(table(Collective::allgather, timer_of([](int nodes, int each, std::uint64_t bytes) {
                        if (each == 4) return "c-rd";
                        if (nodes == 8) return "o-rd";
                        return bytes == 16 ? "hs1" : "hs2";
                    })),
              R"(rule = [
    { collective = "allgather", algorithm = "hs1", nodes = [0, 4], ranks_per_node = [0, 2], bytes = [0, 64] },
    { collective = "allgather", algorithm = "hs2", nodes = [0, 4], ranks_per_node = [0, 2], bytes = [65, inf] },
    { collective = "allgather", algorithm = "o-rd", nodes = [5, inf], ranks_per_node = [0, 2] },
    { collective = "allgather", algorithm = "c-rd", ranks_per_node = [3, inf] },
]
)");
}

TEST(TuneRules, SmallGainsAreNotWorthAChange) {
    const Timer close = [](Collective, const Entry& entry, int, int,
                           std::uint64_t bytes) -> Result<std::optional<double>> {
        if (entry.name == "hs1") return 1.0;
        if (entry.name == "hs2") return bytes == 16 ? 1.01 : bytes == 256 ? 0.97 : 0.8;
        return 9.0;
    };
    EXPECT_EQ(table(Collective::allgather, close), R"(rule = [
    { collective = "allgather", algorithm = "hs1", bytes = [0, 1024] },
    { collective = "allgather", algorithm = "hs2", bytes = [1025, inf] },
]
)");
}

TEST(TuneRules, CallsWhoseBytesAreNotKnownHaveTheirOwn) {
    const std::string text = table(Collective::alltoall, timer_of([](int, int, std::uint64_t bytes) {
                                       return bytes == 16 ? "bruck" : bytes == 256 ? "pairwise" : "smp";
                                   }));
    EXPECT_NE(text.find("\"bruck\", bytes = [0, 64]"), std::string::npos) << text;
    EXPECT_EQ(text.find("\"bruck\" }"), std::string::npos) << "it needs equal blocks: " << text;
    EXPECT_NE(text.find("{ collective = \"alltoall\", algorithm = \"pairwise\" }"), std::string::npos)
        << text;
}

TEST(TuneRules, WhatWasFarBehindTwiceIsNotTriedAgain) {
    const Grid sizes{{2}, {4}, {16, 64, 256, 1024}, 512};
    int tried = 0;
    const Timer timer = [&](Collective, const Entry& entry, int, int,
                            std::uint64_t bytes) -> Result<std::optional<double>> {
        if (entry.name == "hs1") return 1.0;
        if (entry.name != "naive") return bytes == 64 ? 3.0 : 5.0;
        ++tried;
        return 5.0;
    };
    EXPECT_EQ(table(Collective::allgather, timer, sizes),
              "rule = [\n    { collective = \"allgather\", algorithm = \"hs1\" },\n]\n");
    EXPECT_EQ(tried, 2);
}

TEST(TuneRules, OfABarrierHaveNoBytes) {
    const std::string text =
        table(Collective::barrier,
              timer_of([](int nodes, int, std::uint64_t) { return nodes == 2 ? "dissemination" : "smp"; }));
    EXPECT_EQ(text, R"(rule = [
    { collective = "barrier", algorithm = "dissemination", nodes = [0, 4] },
    { collective = "barrier", algorithm = "smp", nodes = [5, inf] },
]
)");
}

TEST(TuneRules, LargeJobsAreNotTried) {
    Grid small = grid;
    small.most_ranks = 8;  // 8 nodes with 4 ranks each are too many, and ruled like 2 nodes
    const Timer timer = [](Collective, const Entry& entry, int nodes, int each,
                           std::uint64_t) -> Result<std::optional<double>> {
        EXPECT_LE(nodes * each, 8);
        return entry.name == (nodes == 8 ? "o-rd" : "hs1") ? 1.0 : 3.0;
    };
    EXPECT_EQ(table(Collective::allgather, timer, small), R"(rule = [
    { collective = "allgather", algorithm = "hs1", nodes = [0, 4], ranks_per_node = [0, 2] },
    { collective = "allgather", algorithm = "o-rd", nodes = [5, inf], ranks_per_node = [0, 2] },
    { collective = "allgather", algorithm = "hs1", ranks_per_node = [3, inf] },
]
)");
}

/// Ratios of 128 KiB, 512 KiB and 2 MiB.
std::map<std::uint64_t, double> ratios(double small, double middle, double large) {
    return {{128 << 10, small}, {512 << 10, middle}, {2 << 20, large}};
}

TEST(TuneMessages, NoRuleWhereNothingIsMuchFaster) {
    const coll::MessageRules rules = message_rules_for(
        {{{0, 256 << 10}, ratios(1.2, 0.97, 1.1)}, {{64 << 10, 0}, ratios(0.95, 0.97, 0.97)}});
    EXPECT_EQ(rules, coll::MessageRules());
    EXPECT_EQ(message_rules_for({}), coll::MessageRules());
}

TEST(TuneMessages, ARuleReachesHalfTheWayByRatio) {
    const coll::MessageRules rules = message_rules_for(
        {{{0, 256 << 10}, ratios(1, 0.93, 1.01)}, {{0, coll::MessageRule::whole}, ratios(0.9, 0.86, 1.2)}});
    EXPECT_EQ(Selection({}, rules).text(),
              "message = [\n    { bytes = [0, 1048576], segment = inf },\n]\nrule = [\n]\n");
}

TEST(TuneMessages, AThresholdThatWinsOverAllSizesWithTheSegmentsMeasuredUnderIt) {
    const coll::MessageRules rules = message_rules_for({{{0, 1 << 20}, ratios(1, 1, 0.7)},
                                                        {{64 << 10, 0}, ratios(0.8, 0.85, 0.9)},
                                                        {{64 << 10, 1 << 20}, ratios(0.75, 0.85, 0.8)}});
    EXPECT_EQ(Selection({}, rules).text(), R"(threshold = 65536
message = [
    { bytes = [0, 262144], segment = 1048576 },
    { bytes = [1048577, inf], segment = 1048576 },
]
rule = [
]
)");
}

TEST(TuneRules, OfTheSimulationChooseItsBest) {
    const auto model = fabric::sim::read_model("noleland");
    ASSERT_TRUE(model) << model.error().message;
    const Timer timer = simulated_timer(*model);
    for (int i = 0; i < coll::collectives; ++i) {
        const auto collective = static_cast<Collective>(i);
        const auto rules = rules_for(collective, {{2}, {4}, {64, 65536}, 512}, timer);
        ASSERT_TRUE(rules) << rules.error().message;
        ASSERT_FALSE(rules->empty());
        for (const coll::Rule& rule : *rules) {
            if (!rule.bytes && rules->size() > 1) continue;  // for unknown sizes
            const std::uint64_t bytes = rule.bytes && rule.bytes->least > 64 ? 65536 : 64;
            const double chosen = timer(collective, *rule.algorithm, 2, 4, bytes).value().value();
            for (const Entry& entry : coll::algorithms(collective)) {
                const auto other = timer(collective, entry, 2, 4, bytes);
                ASSERT_TRUE(other);
                EXPECT_LE(chosen, other->value_or(chosen) * (1 + worth_a_change)) << entry.name;
            }
        }
    }
}

}  // namespace
}  // namespace mpisec::cli
