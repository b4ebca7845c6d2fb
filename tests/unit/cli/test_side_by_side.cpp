// Pieces of work on several threads: each once, no more at a time than asked for, and what becomes of an exception.
#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>

#include "cli/side_by_side.hpp"

namespace mpisec::cli {
namespace {

TEST(SideBySide, EachPieceOnce) {
    for (std::size_t most : {1, 3, 100}) {
        std::vector<std::atomic<int>> done(17);
        side_by_side(done.size(), most, [&](std::size_t i) { ++done[i]; });
        for (const auto& times : done) EXPECT_EQ(times, 1);
    }
    side_by_side(0, 4, [](std::size_t) { FAIL(); });
}

TEST(SideBySide, NoMoreAtATimeThanAskedFor) {
    std::atomic<int> now{0}, highest{0};
    side_by_side(20, 3, [&](std::size_t) {
        const int here = ++now;
        for (int seen = highest; seen < here && !highest.compare_exchange_weak(seen, here);) {
        }
        for (int i = 0; i < 10'000 && highest < 2; ++i)  // a thread may start late
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        --now;
    });
    EXPECT_LE(highest, 3);
    EXPECT_GE(highest, 2);
}

TEST(SideBySide, AnExceptionEndsItAndArrives) {
    std::atomic<int> begun{0};
    const auto run = [&] {
        side_by_side(1000, 2, [&](std::size_t i) {
            ++begun;
            if (i == 3) throw std::runtime_error("no memory");
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        });
    };
    EXPECT_THROW(run(), std::runtime_error);
    EXPECT_LT(begun, 1000);
}

TEST(SideBySide, TheseCores) {
    EXPECT_GE(usable_cores(), 1u);
}

}  // namespace
}  // namespace mpisec::cli
