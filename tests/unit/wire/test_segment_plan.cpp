// A large message is cut into segments that cover every byte once.
#include <gtest/gtest.h>

#include <random>
#include <set>

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
            ASSERT_EQ(plan.size(i), plan.first_bytes);
        else if (plan.is_last(i))
            ASSERT_TRUE(plan.size(i) >= 1 && plan.size(i) <= plan.segment_bytes);
        else
            ASSERT_EQ(plan.size(i), plan.segment_bytes);
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

TEST(SegmentPlan, AutomaticLengthIsAnEighthWithinBounds) {
    for (auto [total, expected] : {std::pair(65537, 131072),
                                   {1 << 20, 131072},
                                   {(2 << 20) - 1, 131072},
                                   {2 << 20, 262144},
                                   {3 << 20, 262144},
                                   {4 << 20, 524288},
                                   {1 << 30, 524288}})
        EXPECT_EQ(automatic_segment_bytes(static_cast<std::uint64_t>(total), 65536, Cutting::slow_cipher),
                  static_cast<std::uint64_t>(expected))
            << total;
}

TEST(SegmentPlan, AutomaticLengthWithAMediumCipherIsAQuarterWithinBounds) {
    for (auto [total, expected] :
         {std::pair(65537, 262144), {(2 << 20) - 1, 262144}, {2 << 20, 524288}, {1 << 30, 524288}})
        EXPECT_EQ(automatic_segment_bytes(static_cast<std::uint64_t>(total), 131072, Cutting::medium_cipher),
                  static_cast<std::uint64_t>(expected))
            << total;
}

TEST(SegmentPlan, FasterCiphersHaveALongerFirstPart) {
    EXPECT_EQ(automatic_first_bytes(aead::Speed::slow), 65536u);
    EXPECT_EQ(automatic_first_bytes(aead::Speed::medium), 131072u);
    EXPECT_EQ(automatic_first_bytes(aead::Speed::fast), 262144u);
}

TEST(SegmentPlan, AutomaticLengthWithAFastCipherIsTheSameForAll) {
    for (std::uint64_t total : {65537, 1 << 20, 1 << 30})
        EXPECT_EQ(automatic_segment_bytes(total, 65536, Cutting::fast_cipher), 524288u) << total;
}

TEST(SegmentPlan, AutomaticLengthWhereRanksShareCpusIsAHalfWithinBounds) {
    for (auto [total, expected] :
         {std::pair(65537, 524288), {(2 << 20) - 1, 524288}, {2 << 20, 1 << 20}, {1 << 30, 1 << 20}})
        EXPECT_EQ(automatic_segment_bytes(static_cast<std::uint64_t>(total), 65536, Cutting::shared_cores),
                  static_cast<std::uint64_t>(expected))
            << total;
}

TEST(SegmentPlan, AutomaticLengthWithWorkersLeavesAShortLastSegment) {
    for (std::uint64_t threshold : {65536, 131072})
        for (std::uint64_t total = threshold + 1; total < (32u << 20); total += total / 97 + 1) {
            const std::uint64_t bytes = automatic_segment_bytes(total, threshold, Cutting::workers);
            const SegmentPlan plan{total, threshold, bytes};
            EXPECT_LE(plan.size(plan.count() - 1), 131072u) << total;
            EXPECT_GE(bytes, 131072u) << total;
            EXPECT_EQ(bytes % 4096, 0u) << total;
            EXPECT_LE(bytes, std::clamp<std::uint64_t>(total / 8, 262144, 1 << 20) + 4096) << total;
        }
    EXPECT_EQ(automatic_segment_bytes(262145, 131072, Cutting::workers), 131072u);
    EXPECT_EQ(automatic_segment_bytes(1 << 20, 131072, Cutting::workers), 262144u);
    EXPECT_EQ(automatic_segment_bytes(4 << 20, 131072, Cutting::workers), 491520u);
    EXPECT_EQ(automatic_segment_bytes(1u << 30, 131072, Cutting::workers), 1048576u);
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
