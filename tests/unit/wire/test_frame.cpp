// Frame layout (docs/protocol.md): bytes are where they are said to be, round trips, what is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <tuple>

#include "wire/frame.hpp"

namespace mpisec::wire {
namespace {

constexpr std::uint64_t random_seed = 20261121;

ContextId counting_context() {
    ContextId context;
    for (std::size_t i = 0; i < context.size(); ++i) context[i] = static_cast<std::uint8_t>(0xC0 + i);
    return context;
}

TEST(Nonce, LayoutIsEpochKindBackCounterBackLittleEndian) {
    const Nonce nonce = make_nonce({Kind::large_header, 0x30201, 0x334455667788, {0x1122, 0x99}});
    const Nonce expected = {0x01, 0x02, 0x23, 0x99, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11};
    EXPECT_EQ(nonce, expected);
}

TEST(Nonce, RoundTrip) {
    std::mt19937_64 random(random_seed);
    for (int i = 0; i < 10000; ++i) {
        const NonceFields in{random() % 2 ? Kind::small : Kind::large_header,
                             static_cast<std::uint32_t>(random()) & max_epoch,
                             random() & max_counter,
                             {static_cast<std::uint16_t>(random()), static_cast<std::uint8_t>(random())}};
        NonceFields out{};
        ASSERT_TRUE(parse_nonce(make_nonce(in).data(), out));
        ASSERT_EQ(std::tuple(in.kind, in.epoch, in.counter), std::tuple(out.kind, out.epoch, out.counter));
        ASSERT_EQ(in.back, out.back);
    }
}

TEST(Nonce, UnknownKindsAreRefused) {
    for (unsigned kind = 0; kind < 16; ++kind) {
        Nonce nonce = make_nonce({Kind::small, 7, 7});
        nonce[2] = static_cast<std::uint8_t>(kind << 4);
        NonceFields fields{};
        EXPECT_EQ(parse_nonce(nonce.data(), fields), kind == 1 || kind == 2) << kind;
    }
}

TEST(Nonce, DifferentFieldsGiveDifferentNonces) {  // S4
    std::set<Nonce> seen;
    std::size_t made = 0;
    for (Kind kind : {Kind::small, Kind::large_header})
        for (std::uint32_t epoch : {0u, 1u, 255u, 256u, max_epoch})
            for (std::uint64_t counter : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{255},
                                          std::uint64_t{1} << 32, max_counter}) {
                seen.insert(make_nonce({kind, epoch, counter}));
                ++made;
            }
    EXPECT_EQ(seen.size(), made);
}

TEST(AssociatedData, LayoutIsAsDocumented) {
    const AssociatedData ad = associated_data(Kind::large_header, counting_context(), 0x01020304, -2,
                                              0x0A0B0C0D, 0x1122334455667788);
    const std::uint8_t expected[associated_data_bytes] = {
        1,    2,    0,    0,                             // version kind zero
        0x04, 0x03, 0x02, 0x01, 0xFE, 0xFF, 0xFF, 0xFF,  // source destination
        0x0D, 0x0C, 0x0B, 0x0A,                          // tag
        0xC0, 0xC1, 0xC2, 0xC3, 0xC4, 0xC5, 0xC6, 0xC7,
        0xC8, 0xC9, 0xCA, 0xCB, 0xCC, 0xCD, 0xCE, 0xCF,   // context
        0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11};  // length
    EXPECT_TRUE(std::equal(ad.begin(), ad.end(), std::begin(expected)));
}

TEST(AssociatedData, EveryFieldIsBound) {  // S2
    const ContextId context = counting_context();
    ContextId other = context;
    other[15] ^= 1;
    const AssociatedData ad = associated_data(Kind::small, context, 1, 2, 3, 4);
    EXPECT_NE(ad, associated_data(Kind::large_header, context, 1, 2, 3, 4));
    EXPECT_NE(ad, associated_data(Kind::small, other, 1, 2, 3, 4));
    EXPECT_NE(ad, associated_data(Kind::small, context, 2, 1, 3, 4));
    EXPECT_NE(ad, associated_data(Kind::small, context, 1, 0, 3, 4));
    EXPECT_NE(ad, associated_data(Kind::small, context, 1, 2, 4, 4));
    EXPECT_NE(ad, associated_data(Kind::small, context, 1, 2, 3, 5));
}

TEST(LargeHeader, LayoutAndRoundTrip) {
    std::uint8_t bytes[large_header_bytes];
    encode({0x0102030405060708, 0x0a0b, 0x11223344, 0x55667788}, bytes);
    const std::uint8_t expected[large_header_bytes] = {8, 7, 6,    5,    4,    3,    2,    1,    0x0b, 0x0a,
                                                       0, 0, 0x44, 0x33, 0x22, 0x11, 0x88, 0x77, 0x66, 0x55};
    EXPECT_TRUE(std::equal(std::begin(bytes), std::end(bytes), std::begin(expected)));

    LargeHeader header{};
    ASSERT_TRUE(decode(bytes, 65536, header));
    EXPECT_EQ(header.total, 0x0102030405060708u);
    EXPECT_EQ(header.first_bytes, 0x0a0bu);
    EXPECT_EQ(header.segment_bytes, 0x11223344u);
    EXPECT_EQ(header.channel_tag, 0x55667788);
}

bool decodes(const LargeHeader& header, std::size_t threshold) {
    std::uint8_t bytes[large_header_bytes];
    encode(header, bytes);
    LargeHeader out{};
    return decode(bytes, threshold, out);
}

TEST(LargeHeader, SenselessFieldsAreRefused) {
    EXPECT_TRUE(decodes({101, 100, 1, 0}, 100));
    EXPECT_TRUE(decodes({101, 99, 1, 0}, 100));
    EXPECT_FALSE(decodes({102, 101, 1, 0}, 100)) << "a first part that nobody has room for";
    EXPECT_FALSE(decodes({100, 100, 1, 0}, 100)) << "would have been a small message";
    EXPECT_FALSE(decodes({0, 0, 1, 0}, 0));
    EXPECT_FALSE(decodes({101, 100, 0, 0}, 100)) << "segments of no bytes never end";
    EXPECT_FALSE(decodes({101, 100, 1, -1}, 100)) << "not an MPI tag";
    EXPECT_TRUE(decodes({max_total, 0, 1, 0}, 0));
    EXPECT_FALSE(decodes({max_total + 1, 0, 1, 0}, 0)) << "more than MPI_Count can say";
    EXPECT_TRUE(decodes({max_total, 0, max_segment_bytes, 0}, 0));
    EXPECT_FALSE(decodes({max_total, 0, max_segment_bytes + 1, 0}, 0))
        << "more than an int can say with its tag";
}

TEST(WireLength, OfFirstParts) {
    EXPECT_EQ(small_overhead, 28u);
    EXPECT_EQ(large_first_wire_bytes(65536), 12u + 20 + 16 + 65536 + 16);
}

}  // namespace
}  // namespace mpisec::wire
