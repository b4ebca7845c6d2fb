// S3: a counter is accepted once, whatever the order, held against a plain set.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "models.hpp"
#include "wire/replay.hpp"

namespace mpisec::wire {
namespace {

constexpr std::uint64_t random_seed = 20261121;

TEST(ReplaySet, InOrderKeepsNothing) {
    ReplaySet set;
    for (std::uint64_t counter = 0; counter < 100000; ++counter) {
        ASSERT_FALSE(set.contains(counter));
        ASSERT_TRUE(set.insert(counter));
        ASSERT_FALSE(set.insert(counter));
        ASSERT_EQ(set.runs(), 0u);
    }
    EXPECT_EQ(set.base(), 100000u);
    EXPECT_FALSE(set.insert(0)) << "an old counter is never forgotten";
}

TEST(ReplaySet, EveryPermutationOfSevenAgreesWithTheModel) {
    std::vector<std::uint64_t> order(7);
    std::iota(order.begin(), order.end(), std::uint64_t{0});
    do {
        ReplaySet set;
        ReplayModel model;
        for (std::uint64_t counter : order) {
            ASSERT_TRUE(set.insert(counter));
            ASSERT_FALSE(set.insert(counter));
            model.insert(counter);
            ASSERT_EQ(set.base(), model.base());
            ASSERT_EQ(set.runs(), model.runs());
        }
        ASSERT_EQ(set.base(), 7u);
        ASSERT_EQ(set.runs(), 0u);
    } while (std::next_permutation(order.begin(), order.end()));
}

TEST(ReplaySet, RandomInsertsAndReplaysAgreeWithTheModel) {
    std::mt19937_64 random(random_seed);
    for (int round = 0; round < 300; ++round) {
        const std::uint64_t span = 1 + random() % 120;
        ReplaySet set;
        ReplayModel model;
        for (int i = 0; i < 200; ++i) {
            const std::uint64_t counter = random() % span;
            ASSERT_EQ(set.contains(counter), model.accepted.contains(counter));
            ASSERT_EQ(set.insert(counter), model.insert(counter));
            ASSERT_EQ(set.base(), model.base());
            ASSERT_EQ(set.runs(), model.runs());
        }
        for (std::uint64_t counter = 0; counter <= span; ++counter)
            ASSERT_EQ(set.contains(counter), model.accepted.contains(counter));
    }
}

// Matched out of order: as many gaps as messages still unreceived, no more.
TEST(ReplaySet, MemoryIsThatOfTheGaps) {
    std::mt19937_64 random(random_seed);
    ReplaySet set;
    std::vector<std::uint64_t> waiting;
    for (std::uint64_t counter = 0; counter < 20000; ++counter) {
        waiting.push_back(counter);
        if (waiting.size() < 16) continue;
        const std::size_t pick = random() % waiting.size();
        ASSERT_TRUE(set.insert(waiting[pick]));
        waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(pick));
        ASSERT_LE(set.runs(), waiting.size());
    }
}

TEST(ReplaySet, HighestCountersDoNotWrap) {
    constexpr std::uint64_t top = std::numeric_limits<std::uint64_t>::max();
    ReplaySet set;
    EXPECT_TRUE(set.insert(top));
    EXPECT_TRUE(set.insert(top - 2));
    EXPECT_TRUE(set.insert(top - 1));
    EXPECT_FALSE(set.insert(top));
    EXPECT_FALSE(set.contains(0));
    EXPECT_EQ(set.runs(), 1u);
    EXPECT_TRUE(set.insert(0));
    EXPECT_EQ(set.base(), 1u);
}

}  // namespace
}  // namespace mpisec::wire
