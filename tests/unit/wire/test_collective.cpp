#include "wire/collective.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace mpisec::wire {
namespace {

const ContextId context{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

TEST(BoxNonce, NamesCollectiveSealerAndIndex) {
    const Nonce expected{4, 3, 2, 1, 8, 7, 6, 5, 12, 11, 10, 9};
    EXPECT_EQ(sealed_block_nonce(0x01020304, 0x05060708, 0x090A0B0C), expected);
    std::set<Nonce> all;
    for (std::uint32_t collective = 0; collective < 8; ++collective)
        for (std::int32_t sealer = 0; sealer < 8; ++sealer)
            for (std::uint32_t index = 0; index < 8; ++index)
                EXPECT_TRUE(all.insert(sealed_block_nonce(collective, sealer, index)).second);
}

/// S6: however long and however many, no more than so many sealed blocks of so many bytes go under the common
/// key.
TEST(BoxKey, IsCommonToFewSmallBoxes) {
    for (std::uint64_t ranks : {1, 2, 7, 1024}) {
        EXPECT_FALSE(has_own_key(65536, 4 * ranks - 1, ranks));
        EXPECT_TRUE(has_own_key(65537, 0, ranks));
        EXPECT_TRUE(has_own_key(0, 4 * ranks, ranks));
        EXPECT_TRUE(has_own_key(1, std::uint64_t{1} << 31, ranks));
    }
}

TEST(SealedBlockAssociatedData, BindsEveryField) {
    const SealedBlockName name{0x1122334455667788, 5, 6};
    const SealedBlockAssociatedData ad = sealed_block_associated_data(context, name, 7);
    const std::uint8_t expected[sealed_block_associated_data_bytes] = {
        1,    3,    0,    0,    5,    0,    0,    0,    6, 0,  0,  0,  0,  0,  0,  0,
        1,    2,    3,    4,    5,    6,    7,    8,    9, 10, 11, 12, 13, 14, 15, 16,
        0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 7, 0,  0,  0,  0,  0,  0,  0};
    EXPECT_TRUE(std::equal(ad.begin(), ad.end(), expected));
    ContextId other = context;
    other[15] ^= 1;
    EXPECT_NE(ad, sealed_block_associated_data(other, name, 7));
    EXPECT_NE(ad, sealed_block_associated_data(context, {name.collective + (1ull << 40), 5, 6}, 7));
    EXPECT_NE(ad, sealed_block_associated_data(context, {name.collective, 4, 6}, 7));
    EXPECT_NE(ad, sealed_block_associated_data(context, {name.collective, 5, 7}, 7));
    EXPECT_NE(ad, sealed_block_associated_data(context, name, 8));
}

}  // namespace
}  // namespace mpisec::wire
