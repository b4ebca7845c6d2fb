// How many threads may work, by what was measured of them.
#include "engine/limiter.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <thread>
#include <vector>

namespace mpisec::engine {
namespace {

/// Pieces of 64 KiB as up to `threads` of a machine do them on which n threads together are `speed(n)` times as fast as
/// one. As many work at once as the limiter lets.
void work(Limiter& limiter, std::uint64_t epochs, const std::function<double(unsigned)>& speed,
          unsigned most = 1000) {
    for (std::uint64_t i = 0; i < epochs * Limiter::epoch; ++i) {
        const unsigned active = 1 + static_cast<unsigned>(i % std::min(limiter.limit(), most));
        limiter.record(active, 65536, static_cast<std::uint64_t>(10000 * active / speed(active)));
    }
}

TEST(Limiter, EveryThreadThatHelpsWorks) {
    Limiter limiter(8);
    EXPECT_EQ(limiter.limit(), 8u);
    work(limiter, 100, [](unsigned n) { return 0.9 * n + 0.1; });
    EXPECT_EQ(limiter.limit(), 8u);
}

TEST(Limiter, StopsWhereMemoryIsTheLimit) {
    Limiter limiter(8);
    work(limiter, 3, [](unsigned n) { return std::min(n, 4u); });
    EXPECT_EQ(limiter.limit(), 4u);
}

TEST(Limiter, StopsWhereMoreThreadsAreSlower) {
    Limiter limiter(16);  // eight cores with two hardware threads each, as in the paper's Figure 9
    work(limiter, 5, [](unsigned n) { return n <= 8 ? n : 8 - 0.3 * (n - 8); });
    EXPECT_EQ(limiter.limit(), 8u);
}

TEST(Limiter, TriesAgain) {
    Limiter limiter(8);
    work(limiter, 4, [](unsigned n) { return std::min(n, 3u); });
    ASSERT_EQ(limiter.limit(), 3u);
    work(limiter, Limiter::trial + 4, [](unsigned n) { return n; });  // others have left the machine
    EXPECT_EQ(limiter.limit(), 8u);
}

TEST(Limiter, KnowsNothingOfCrowdsThatNeverCameTogether) {
    Limiter limiter(8);
    // The link takes what three seal.
    work(
        limiter, 40, [](unsigned n) { return std::min(n, 2u); }, 3);
    EXPECT_EQ(limiter.limit(), 8u);
}

TEST(Limiter, TwoMayAlwaysWork) {
    Limiter limiter(4);
    work(limiter, 4, [](unsigned n) { return 1.0 / n; });
    EXPECT_EQ(limiter.limit(), 2u);
    EXPECT_EQ(Limiter(1).limit(), 1u);
}

TEST(Limiter, ThreadsAtOnce) {
    Limiter limiter(4);
    std::vector<std::thread> threads;
    for (unsigned thread = 1; thread <= 4; ++thread)
        threads.emplace_back([&limiter, thread] {
            for (int i = 0; i < 20000; ++i) limiter.record(thread, 65536, 10000);
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(limiter.limit(), 4u);
}

}  // namespace
}  // namespace mpisec::engine
