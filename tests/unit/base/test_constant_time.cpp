#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "base/constant_time.hpp"

namespace mpisec {
namespace {

using Bytes = std::array<std::uint8_t, 40>;

TEST(ConstantTime, EachBitOfEachLength) {
    const Bytes left{1, 2, 3};
    for (std::size_t n = 0; n <= left.size(); ++n)
        for (std::size_t bit = 0; bit < 8 * left.size(); ++bit) {
            Bytes right = left;
            right[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
            EXPECT_EQ(equal_in_constant_time(left.data(), right.data(), n), bit / 8 >= n) << n << " " << bit;
        }
}

TEST(ConstantTime, ATagIsRightAsFarAsItGoes) {
    constexpr std::array<std::uint8_t, 16> tag{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    for (std::size_t n = 0; n <= 17; ++n)
        for (const std::size_t changed : {std::size_t{0}, std::size_t{7}, std::size_t{12}, std::size_t{15}}) {
            std::uint8_t computed[16];
            std::copy(tag.begin(), tag.end(), computed);
            computed[changed] ^= 0x80;
            EXPECT_EQ(is_right_tag(computed, tag.data(), n), n > 0 && n <= changed) << n << " " << changed;
            EXPECT_TRUE(std::ranges::all_of(computed, [](std::uint8_t byte) { return byte == 0; }));
        }
    std::uint8_t computed[16];
    std::copy(tag.begin(), tag.end(), computed);
    EXPECT_TRUE(is_right_tag(computed, tag.data()));
}

}  // namespace
}  // namespace mpisec
