// A large message is cut into segments that cover every byte once.
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

#include "wire/stream.hpp"

namespace mpisec::wire {
namespace {

constexpr std::uint64_t random_seed = 20261121;

void expect_exact_cover(const SegmentPlan& plan) {
    ASSERT_GE(plan.count(), 2u);
    std::uint64_t covered = 0;
    for (std::uint64_t i = 0; i < plan.count(); ++i) {
        ASSERT_EQ(plan.offset(i), covered);
        ASSERT_EQ(plan.is_last(i), i + 1 == plan.count());
        if (i == 0)
            ASSERT_EQ(plan.size(i), plan.threshold);
        else if (plan.is_last(i))
            ASSERT_TRUE(plan.size(i) >= 1 && plan.size(i) <= plan.segment_bytes);
        else if (!plan.tapering)
            ASSERT_EQ(plan.size(i), plan.segment_bytes);
        else
            ASSERT_EQ(plan.size(i) % taper_unit, 0u);
        ASSERT_TRUE(i <= 1 || plan.size(i) <= plan.size(i - 1));
        covered += plan.size(i);
    }
    ASSERT_EQ(covered, plan.total);
}

TEST(SegmentPlan, RandomPlansCoverEveryByteOnce) {
    std::mt19937_64 random(random_seed);
    for (int round = 0; round < 20000; ++round) {
        const std::uint64_t threshold = random() % 300, segment = 1 + random() % 300;
        expect_exact_cover({threshold + 1 + random() % 3000, threshold, segment});
        if (HasFatalFailure()) return;
    }
}

TEST(SegmentPlan, Edges) {
    expect_exact_cover({65537, 65536, 131072});           // one byte beyond
    expect_exact_cover({65536 + 131072, 65536, 131072});  // exactly one full segment
    expect_exact_cover({65536 + 131073, 65536, 131072});
    expect_exact_cover({1, 0, 1});
    EXPECT_EQ((SegmentPlan{65536 + 131072, 65536, 131072}.count()), 2u);
    EXPECT_EQ((SegmentPlan{65536 + 131073, 65536, 131072}.count()), 3u);
}

TEST(SegmentPlan, LongestMessageDoesNotWrap) {
    const SegmentPlan plan{max_total, 0, 1};
    EXPECT_EQ(plan.count(), max_total + 1);
    EXPECT_EQ(plan.offset(plan.count() - 1), max_total - 1);
    EXPECT_EQ(plan.size(plan.count() - 1), 1u);
    const SegmentPlan coarse{max_total, 65536, max_segment_bytes};
    const std::uint64_t last = coarse.count() - 1;
    EXPECT_EQ(coarse.offset(last) + coarse.size(last), max_total);
}

std::vector<std::uint64_t> kibibytes(const SegmentPlan& plan) {
    std::vector<std::uint64_t> sizes;
    for (std::uint64_t i = 1; i < plan.count(); ++i) sizes.push_back(plan.size(i) / 1024);
    return sizes;
}

TEST(SegmentPlan, RandomTaperingPlansCoverEveryByteOnce) {
    std::mt19937_64 random(random_seed);
    for (int round = 0; round < 20000; ++round) {
        const std::uint64_t threshold = random() % 70000, segment = taper_unit * (1 + random() % 20);
        expect_exact_cover({threshold + 1 + random() % 9'000'000, threshold, segment, true});
        if (HasFatalFailure()) return;
    }
    for (std::uint64_t segment : {taper_unit, 8 * taper_unit})
        for (std::uint64_t rest = 8 * taper_unit - 2; rest < 30 * taper_unit; rest += taper_unit / 2 + 1)
            expect_exact_cover({65536 + rest, 65536, segment, true});
}

/// What each is: at most the longest, two thirds of what is left, in whole units.
TEST(SegmentPlan, TaperingSegmentsAreTwoThirdsOfTheRest) {
    using Sizes = std::vector<std::uint64_t>;
    EXPECT_EQ(kibibytes({256 << 10, 64 << 10, 512 << 10, true}), (Sizes{128, 64}));
    EXPECT_EQ(kibibytes({1 << 20, 64 << 10, 512 << 10, true}), (Sizes{512, 320, 128}));
    EXPECT_EQ(kibibytes({2 << 20, 64 << 10, 512 << 10, true}), (Sizes{512, 512, 512, 320, 128}));
    EXPECT_EQ(kibibytes({65 << 10, 64 << 10, 512 << 10, true}), (Sizes{1}));
}

TEST(SegmentPlan, LongestTaperingMessageDoesNotWrap) {
    const SegmentPlan plan{max_total, 65536, 512 * 1024, true};
    const std::uint64_t last = plan.count() - 1;
    EXPECT_EQ(plan.offset(last) + plan.size(last), max_total);
    EXPECT_LE(plan.size(last), taper_unit * 2);
}

TEST(SegmentPlan, AutomaticSegmentsTaper) {
    const SegmentPlan plan = automatic_plan(4 << 20, 65536, Sealer::caller);
    EXPECT_TRUE(plan.tapering);
    EXPECT_EQ(plan.segment_bytes, 512u << 10);
    EXPECT_EQ(plan.total, 4u << 20);
    EXPECT_EQ(plan.threshold, 65536u);
}

void expect_equal_segments(std::uint64_t total, Sealer sealer, std::uint64_t bytes) {
    const SegmentPlan plan = automatic_plan(total, 65536, sealer);
    EXPECT_FALSE(plan.tapering);
    EXPECT_EQ(plan.segment_bytes, bytes) << total;
}

TEST(SegmentPlan, AutomaticSegmentsForWorkersAreAnEighthWithinBounds) {
    for (auto [total, expected] : {std::pair(65537, 131072),
                                   {1 << 20, 131072},
                                   {(2 << 20) - 1, 131072},
                                   {2 << 20, 262144},
                                   {3 << 20, 262144},
                                   {4 << 20, 524288},
                                   {1 << 30, 524288}})
        expect_equal_segments(static_cast<std::uint64_t>(total), Sealer::workers,
                              static_cast<std::uint64_t>(expected));
}

TEST(SegmentPlan, AutomaticSegmentsWhereRanksShareCpusAreHalvesWithinBounds) {
    for (auto [total, expected] :
         {std::pair(65537, 524288), {(2 << 20) - 1, 524288}, {2 << 20, 1 << 20}, {1 << 30, 1 << 20}})
        expect_equal_segments(static_cast<std::uint64_t>(total), Sealer::crowded,
                              static_cast<std::uint64_t>(expected));
}

TEST(SegmentNonce, LayoutAndUniqueness) {
    const Nonce expected = {0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 1, 0, 0, 0};
    EXPECT_EQ(segment_nonce(0x1122334455667788, true), expected);
    std::set<Nonce> seen;
    for (std::uint64_t i = 0; i < 1000; ++i)
        for (bool last : {false, true}) EXPECT_TRUE(seen.insert(segment_nonce(i, last)).second);
}

}  // namespace
}  // namespace mpisec::wire
