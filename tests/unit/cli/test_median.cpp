#include "cli/median.hpp"

#include <gtest/gtest.h>

namespace mpisec::cli {
namespace {

TEST(Median, OfOddAndEvenNumbersOfValues) {
    EXPECT_EQ(median({3}), 3);
    EXPECT_EQ(median({9, 1, 4}), 4);
    EXPECT_EQ(median({4, 1, 9, 2}), 3);
}

}  // namespace
}  // namespace mpisec::cli
