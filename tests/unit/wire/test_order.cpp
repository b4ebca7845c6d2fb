// The order of messages (S2): a swap of two messages of one (communicator, source, tag) is seen whatever the
// order of completion, also after records were dropped.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "models.hpp"
#include "wire/order.hpp"

namespace mpisec::wire {
namespace {

constexpr std::uint64_t random_seed = 20261121;

TEST(OrderTracker, ASwapIsSeenInBothOrdersOfCompletion) {
    OrderTracker first_completes_first;
    EXPECT_TRUE(first_completes_first.record(0, 1));
    EXPECT_FALSE(first_completes_first.record(1, 0));

    OrderTracker second_completes_first;
    EXPECT_TRUE(second_completes_first.record(1, 0));
    EXPECT_FALSE(second_completes_first.record(0, 1));
}

TEST(OrderTracker, ARefusedRecordChangesNothing) {
    OrderTracker tracker;
    EXPECT_TRUE(tracker.record(5, 50));
    EXPECT_FALSE(tracker.record(6, 40));
    EXPECT_FALSE(tracker.record(5, 60));
    EXPECT_EQ(tracker.size(), 1u);
    EXPECT_TRUE(tracker.record(6, 60));
    EXPECT_TRUE(tracker.record(4, 40));
}

TEST(OrderTracker, InOrderTrafficKeepsNothing) {
    OrderTracker tracker;
    for (std::uint64_t i = 0; i < 1000; ++i) {
        ASSERT_TRUE(tracker.record(i, i));
        tracker.prune(i + 1, i + 1);
        ASSERT_TRUE(tracker.empty());
    }
}

TEST(OrderTracker, OneRecordStandsForAStream) {
    // Counter 0 (another tag) is still missing and nothing else waits: only the newest record can show a
    // swap.
    OrderTracker tracker;
    for (std::uint64_t i = 0; i < 1000; ++i) {
        ASSERT_TRUE(tracker.record(i, i + 1));
        tracker.prune(i + 1, 0);
        ASSERT_EQ(tracker.size(), 1u);
    }
    EXPECT_FALSE(tracker.record(1000, 0));
    EXPECT_TRUE(tracker.record(1000, 1001));

    // Receive 0 (perhaps another tag) still waits and every counter has come: again the newest is enough.
    OrderTracker other;
    for (std::uint64_t i = 0; i < 1000; ++i) {
        ASSERT_TRUE(other.record(i + 1, i));
        other.prune(0, i + 1);
        ASSERT_EQ(other.size(), 1u);
    }
    EXPECT_FALSE(other.record(0, 1000));
}

/// One random life of a communicator: receives are posted, messages of two tags are matched to them,
/// sometimes swapped by an attacker, and completed in any order. The pruned tracker must judge as the model
/// that forgets nothing.
void compare_with_model(std::mt19937_64& random, int messages, double swap_chance) {
    OrderTracker tracker;
    OrderModel model;
    std::uniform_real_distribution<double> chance(0, 1);
    std::vector<std::uint64_t> counters(static_cast<std::size_t>(messages));
    std::iota(counters.begin(), counters.end(), std::uint64_t{0});
    for (std::size_t i = 0; i + 1 < counters.size(); ++i)
        if (chance(random) < swap_chance)
            std::swap(counters[i], counters[i + 1 + random() % (counters.size() - i - 1)]);
    std::vector<bool> ours(counters.size());  // of the tag that is looked at
    for (std::size_t i = 0; i < ours.size(); ++i) ours[i] = random() % 3 != 0;

    std::set<std::uint64_t> outstanding, accepted;
    std::uint64_t next_position = 0, base = 0;
    while (accepted.size() < counters.size()) {
        if (next_position < counters.size() && (outstanding.empty() || random() % 2)) {
            outstanding.insert(next_position++);
            continue;
        }
        const std::uint64_t position =
            *std::next(outstanding.begin(), static_cast<std::ptrdiff_t>(random() % outstanding.size()));
        const std::uint64_t counter = counters[position];
        outstanding.erase(position);
        accepted.insert(counter);
        while (accepted.contains(base)) ++base;
        if (!ours[position]) continue;
        ASSERT_EQ(tracker.record(position, counter), model.record(position, counter))
            << "position " << position << ", counter " << counter;
        tracker.prune(outstanding.empty() ? next_position : *outstanding.begin(), base);
        ASSERT_LE(tracker.size(), model.records.size());
    }
    tracker.prune(next_position, base);
    EXPECT_TRUE(tracker.empty()) << "nothing waits and nothing is missing, yet " << tracker.size()
                                 << " records are kept";
}

TEST(OrderTracker, PrunedTrackerJudgesAsTheModelThatForgetsNothing) {
    std::mt19937_64 random(random_seed);
    for (int round = 0; round < 3000; ++round) {
        compare_with_model(random, 2 + static_cast<int>(random() % 40), round % 3 == 0 ? 0.0 : 0.1);
        if (HasFatalFailure()) return;
    }
}

TEST(OrderTracker, HonestTrafficIsNeverRefused) {
    std::mt19937_64 random(random_seed);
    for (int round = 0; round < 300; ++round) {
        OrderTracker tracker;
        std::vector<std::uint64_t> completion(50);
        std::iota(completion.begin(), completion.end(), std::uint64_t{0});
        std::shuffle(completion.begin(), completion.end(), random);
        std::set<std::uint64_t> waiting(completion.begin(), completion.end());
        for (std::uint64_t i : completion) {
            waiting.erase(i);
            ASSERT_TRUE(tracker.record(i, 2 * i));
            tracker.prune(waiting.empty() ? 50 : *waiting.begin(), 0);
        }
    }
}

}  // namespace
}  // namespace mpisec::wire
