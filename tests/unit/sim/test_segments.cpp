// How long vectors are cut (coll/patterns/segments.hpp).
#include <gtest/gtest.h>

#include "coll/patterns/segments.hpp"

namespace mpisec::coll {
namespace {

std::vector<std::size_t> sizes(std::size_t bytes, bool few_parts, std::size_t element = 1) {
    std::vector<std::size_t> all;
    for (const Range& part : segments(bytes, element, few_parts)) all.push_back(part.size);
    return all;
}

constexpr std::size_t s = segment_bytes;

TEST(Segments, CoverTheVectorInWholeElements) {
    for (bool few_parts : {false, true})
        for (std::size_t element : {1, 8, 24, 1000})
            for (std::size_t elements : {0, 1, 2, 5000, 12345, 70000, 200000}) {
                const std::size_t bytes = elements * element;
                std::size_t at = 0;
                for (const Range& part : segments(bytes, element, few_parts)) {
                    EXPECT_EQ(part.offset, at);
                    EXPECT_GT(part.size, 0u);
                    EXPECT_EQ(part.size % element, 0u);
                    at = part.end();
                }
                EXPECT_EQ(at, bytes) << element;
            }
}

TEST(Segments, AreEqualWithASlowCipher) {
    EXPECT_EQ(sizes(2 * s + 1, false), (std::vector<std::size_t>{s, s, 1}));
}

TEST(Segments, AreFewWithAFastCipher) {
    for (const std::size_t whole : {s, 2 * s, 8 * s}) EXPECT_EQ(sizes(whole, true), std::vector{whole});
    EXPECT_EQ(sizes(8 * s + 1, true).size(), 4u);
    EXPECT_EQ(sizes(13 * s, true), (std::vector<std::size_t>{s, 5 * s, 5 * s, 2 * s}));
    const auto many = sizes(64 * s, true);
    for (std::size_t i = 0; i < many.size(); ++i) EXPECT_LE(many[i], 5 * s) << i;
    EXPECT_LE(many.size(), 15u);
}

}  // namespace
}  // namespace mpisec::coll
