// How a partitioned message is cut into pieces, and what its ranks tell each other.
#include <gtest/gtest.h>

#include "wire/partitioned.hpp"

namespace mpisec::wire {
namespace {

constexpr std::uint64_t most = 1000;

TEST(PartitionLayout, PiecesCoverTheMessageOnce) {
    for (const PartitionLayout& layout :
         {PartitionLayout{1, 1, most}, PartitionLayout{16, 999, most}, PartitionLayout{3, 1000, most},
          PartitionLayout{5, 2500, most}, PartitionLayout{7, 1001, most}, PartitionLayout{2, 3, 1}}) {
        std::uint64_t next = 0;
        for (std::uint64_t piece = 0; piece < layout.count(); ++piece) {
            EXPECT_EQ(layout.offset(piece), next);
            EXPECT_EQ(layout.partition_of(piece), next / layout.partition_bytes);
            EXPECT_EQ(layout.offset_in_partition(piece), next % layout.partition_bytes);
            ASSERT_GT(layout.size(piece), 0u);
            EXPECT_LE(layout.size(piece), layout.largest());
            next += layout.size(piece);
        }
        EXPECT_EQ(next, layout.total());
    }
}

TEST(PartitionLayout, PartitionsOfNoBytesAreOnePieceEach) {
    const PartitionLayout layout{3, 0, most};
    EXPECT_EQ(layout.count(), 3u);
    EXPECT_EQ(layout.size(2), 0u);
    EXPECT_EQ(layout.partition_of(2), 2u);
    EXPECT_EQ((PartitionLayout{0, 10, most}.count()), 0u);
}

TEST(PartitionLayout, WhatNoMpiCanSendMakesNoSense) {
    EXPECT_TRUE(makes_sense({1u << 20, 1u << 20, most}, most));
    EXPECT_FALSE(makes_sense({1u << 31, 1, most}, most));
    EXPECT_FALSE(makes_sense({1, 1, 0}, most));
    EXPECT_FALSE(makes_sense({1, 1, most + 1}, most));
    EXPECT_FALSE(makes_sense({1u << 30, 1ull << 34, most}, most));
    EXPECT_FALSE(makes_sense({1, ~0ull, most}, most));
}

TEST(PartitionNotice, CarriesWhatItSays) {
    PartitionNotice layout{{1, 2, 3}, PartitionNotice::Kind::layout, 0, 0, {4, 5, 6}}, heard;
    ASSERT_TRUE(decode(encode(layout), most, heard));
    EXPECT_EQ(heard.message, layout.message);
    EXPECT_EQ(heard.kind, layout.kind);
    EXPECT_EQ(heard.layout, layout.layout);
    PartitionNotice ready{{9}, PartitionNotice::Kind::ready, 77, 1ull << 40};
    ASSERT_TRUE(decode(encode(ready), most, heard));
    EXPECT_EQ(heard.tag, 77);
    EXPECT_EQ(heard.start, 1ull << 40);
    ready.tag = -1;
    EXPECT_FALSE(decode(encode(ready), most, heard));
    ready.tag = 1, ready.start = 0;
    EXPECT_FALSE(decode(encode(ready), most, heard));
    ready.start = 1, ready.kind = static_cast<PartitionNotice::Kind>(4);
    EXPECT_FALSE(decode(encode(ready), most, heard));
    ASSERT_TRUE(decode(encode({{}, PartitionNotice::Kind::failed}), most, heard));
    EXPECT_EQ(heard.kind, PartitionNotice::Kind::failed);
    layout.layout.piece_bytes = most + 1;
    EXPECT_FALSE(decode(encode(layout), most, heard));
}

/// S2, S4: each piece has a nonce of its own, and is bound to its place and to how the message is cut.
TEST(PartitionPiece, IsBoundToItsPlace) {
    const PartitionLayout layout{4, 16, most};
    EXPECT_NE(piece_nonce(0), piece_nonce(1));
    EXPECT_NE(piece_nonce(1), piece_nonce(1ull << 32));
    const PieceAssociatedData ad = piece_associated_data(layout, 1);
    EXPECT_NE(ad, piece_associated_data(layout, 2));
    EXPECT_NE(ad, piece_associated_data({5, 16, most}, 1));
    EXPECT_NE(ad, piece_associated_data({4, 17, most}, 1));
    EXPECT_NE(ad, piece_associated_data({4, 16, most - 1}, 1));
}

}  // namespace
}  // namespace mpisec::wire
