// S3: the notice of counters that never come names exactly these.
#include <gtest/gtest.h>

#include "wire/order.hpp"
#include "wire/replay.hpp"
#include "wire/skips.hpp"

namespace mpisec::wire {
namespace {

TEST(SkipNotice, CarriesItsRuns) {
    const std::vector<CounterRun> runs = {{0, 0}, {5, 9}, {~0ull - 1, ~0ull}};
    EXPECT_EQ(decode_skips(encode_skips(runs)), runs);
    EXPECT_TRUE(decode_skips(encode_skips({})).empty());
    std::vector<CounterRun> full;
    for (std::uint64_t i = 0; i < most_skipped_runs; ++i) full.push_back({10 * i, 10 * i + 3});
    EXPECT_EQ(decode_skips(encode_skips(full)), full);
}

TEST(SkipNotice, RunsWithoutEndAreNoRuns) {
    EXPECT_TRUE(decode_skips(encode_skips(std::vector<CounterRun>{{0, ~0ull}, {7, 6}})).empty());
    EXPECT_EQ(decode_skips(encode_skips(std::vector<CounterRun>{{1, longest_skipped_run}})).size(), 1u);
}

/// Every second counter is skipped: once the notices are in, nothing is kept, in either tracker.
TEST(SkipNotice, SkippedCountersFreeWhatWaitedForThem) {
    ReplaySet set;
    OrderTracker order;
    for (std::uint64_t i = 0; i < 1000; ++i) {
        ASSERT_TRUE(set.insert(2 * i + 1));
        ASSERT_TRUE(order.record(i, 2 * i + 1));
        order.prune(i + 1, set.base());
    }
    EXPECT_EQ(set.runs(), 1000u);
    for (std::uint64_t i = 0; i < 1000; ++i) {
        const std::vector<CounterRun> run = {{2 * i, 2 * i}};
        for (const CounterRun& skipped : decode_skips(encode_skips(run)))
            ASSERT_TRUE(set.insert(skipped.first));
    }
    EXPECT_EQ(set.runs(), 0u);
    EXPECT_EQ(set.base(), 2000u);
    order.prune(1000, set.base());
    EXPECT_TRUE(order.empty());
    EXPECT_FALSE(set.insert(4)) << "a skipped counter is used";
}

}  // namespace
}  // namespace mpisec::wire
