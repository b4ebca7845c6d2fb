// What a message says of the one before it (docs/protocol.md, "Nonces, counters, epochs").
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>

#include "wire/predecessors.hpp"

namespace mpisec::wire {
namespace {

TEST(LastCounters, EachStreamHasItsOwn) {
    LastCounters predecessors;
    EXPECT_EQ(predecessors.back_from(5, 0), 0);
    EXPECT_EQ(predecessors.back_from(5, 1), 1);
    EXPECT_EQ(predecessors.back_from(6, 2), 0);
    EXPECT_EQ(predecessors.back_from(5, 3), 2);
    EXPECT_EQ(predecessors.back_from(6, 10), 8);
}

TEST(LastCounters, WhatWillNotArriveIsNotNamed) {
    LastCounters predecessors;
    predecessors.back_from(1, 3);
    predecessors.back_from(1, 4);
    predecessors.forget(1, 3);  // 4 has named it already
    EXPECT_EQ(predecessors.back_from(1, 5), 1);
    predecessors.forget(1, 5);
    EXPECT_EQ(predecessors.back_from(1, 6), 2);  // 4
    predecessors.forget(1, 6);
    predecessors.forget(1, 4);  // the one before is not known any more
    EXPECT_EQ(predecessors.back_from(1, 7), 0);
    EXPECT_EQ(predecessors.back_from(1, 8), 1);
    predecessors.forget(2, 7);
    EXPECT_EQ(predecessors.back_from(2, 9), 0);
}

TEST(LastCounters, StreamsInUseOutliveThoseThatAreNot) {
    LastCounters predecessors;
    std::uint64_t counter = 0;
    predecessors.back_from(7, counter);
    for (std::uint64_t other = 100; other < 100 + 4 * LastCounters::most_streams; ++other) {
        predecessors.back_from(other, ++counter);
        if (other % 1000 == 0) {
            const std::uint64_t back = predecessors.back_from(7, ++counter);
            ASSERT_GT(back, 0U) << other;
            ASSERT_LE(back, 1001U);
        }
    }
    EXPECT_LE(predecessors.streams(), LastCounters::most_streams);
}

TEST(LastCounters, AsAModelSays) {
    std::mt19937_64 random(20261127);
    LastCounters predecessors;
    std::map<std::uint64_t, std::uint64_t> model;
    for (std::uint64_t counter = 0; counter < 100000; ++counter) {
        const std::uint64_t stream = random() % 50;
        const auto last = model.find(stream);
        EXPECT_EQ(predecessors.back_from(stream, counter), last == model.end() ? 0 : counter - last->second);
        if (random() % 10 == 0)
            predecessors.forget(stream, counter);
        else
            model[stream] = counter;
    }
}

TEST(LastCounters, MemoryIsBounded) {
    LastCounters predecessors;
    for (std::uint64_t counter = 0; counter < 3 * LastCounters::most_streams; ++counter)
        EXPECT_EQ(predecessors.back_from(counter, counter), 0U);
    EXPECT_LE(predecessors.streams(), LastCounters::most_streams);
}

WayBack back(unsigned same_tag, unsigned any_tag) {
    return {static_cast<std::uint16_t>(same_tag), static_cast<std::uint8_t>(any_tag)};
}

TEST(Predecessors, OfTheSameTagAndOfAll) {
    Predecessors predecessors;
    EXPECT_EQ(predecessors.back_from(1, 5, 0), back(0, 0));
    EXPECT_EQ(predecessors.back_from(1, 6, 1), back(0, 1));
    EXPECT_EQ(predecessors.back_from(1, 5, 3), back(3, 2));
    EXPECT_EQ(predecessors.back_from(2, 5, 3), back(0, 0));  // another rank's counters
    EXPECT_EQ(predecessors.back_from(1, 0, 4), back(0, 1));
}

TEST(Predecessors, TooFarBackIsNotSaid) {
    Predecessors predecessors;
    predecessors.back_from(1, 2, 7);
    EXPECT_EQ(predecessors.back_from(1, 2, 7 + 255), back(255, 255));
    EXPECT_EQ(predecessors.back_from(1, 2, 7 + 255 + 256), back(256, 0));
    EXPECT_EQ(predecessors.back_from(1, 2, 7 + 511 + 65535), back(65535, 0));
    EXPECT_EQ(predecessors.back_from(1, 2, 7 + 511 + 65535 + 65536), back(0, 0));
    EXPECT_EQ(predecessors.back_from(1, 2, 7 + 511 + 65535 + 65537), back(1, 1));
}

TEST(Predecessors, WhatWillNotArriveIsNamedByNone) {
    Predecessors predecessors;
    predecessors.back_from(1, 5, 0);
    predecessors.back_from(1, 6, 1);
    predecessors.forget(1, 6, 1);
    EXPECT_EQ(predecessors.back_from(1, 6, 2), back(0, 2));
    EXPECT_EQ(predecessors.back_from(1, 5, 3), back(3, 1));
}

}  // namespace
}  // namespace mpisec::wire
