// What a message says of the one before it (docs/protocol.md, "Nonces, counters, epochs").
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>

#include "wire/predecessors.hpp"

namespace mpisec::wire {
namespace {

TEST(Predecessors, EachStreamHasItsOwn) {
    Predecessors predecessors;
    EXPECT_EQ(predecessors.back_from(5, 0), 0);
    EXPECT_EQ(predecessors.back_from(5, 1), 1);
    EXPECT_EQ(predecessors.back_from(6, 2), 0);
    EXPECT_EQ(predecessors.back_from(5, 3), 2);
    EXPECT_EQ(predecessors.back_from(6, 10), 8);
}

TEST(Predecessors, TooFarBackIsNotSaid) {
    Predecessors predecessors;
    predecessors.back_from(1, 7);
    EXPECT_EQ(predecessors.back_from(1, 7 + 65535), 65535);
    EXPECT_EQ(predecessors.back_from(1, 7 + 65535 + 65536), 0);
    EXPECT_EQ(predecessors.back_from(1, 7 + 65535 + 65537), 1);
}

TEST(Predecessors, WhatWillNotArriveIsNotNamed) {
    Predecessors predecessors;
    predecessors.back_from(1, 3);
    predecessors.back_from(1, 4);
    predecessors.forget(1, 3);  // 4 has named it already
    EXPECT_EQ(predecessors.back_from(1, 5), 1);
    predecessors.forget(1, 5);
    EXPECT_EQ(predecessors.back_from(1, 6), 0);
    EXPECT_EQ(predecessors.back_from(1, 7), 1);
    predecessors.forget(2, 7);
}

TEST(Predecessors, AsAModelSays) {
    std::mt19937_64 random(20261127);
    Predecessors predecessors;
    std::map<std::uint64_t, std::uint64_t> model;
    for (std::uint64_t counter = 0; counter < 100000; ++counter) {
        const std::uint64_t stream = random() % 50;
        const auto last = model.find(stream);
        EXPECT_EQ(predecessors.back_from(stream, counter), last == model.end() ? 0 : counter - last->second);
        model[stream] = counter;
        if (random() % 10 == 0) {
            predecessors.forget(stream, counter);
            model.erase(stream);
        }
    }
}

TEST(Predecessors, MemoryIsBounded) {
    Predecessors predecessors;
    for (std::uint64_t counter = 0; counter < 3 * Predecessors::most_streams; ++counter)
        EXPECT_EQ(predecessors.back_from(counter, counter), 0);
    EXPECT_LE(predecessors.streams(), Predecessors::most_streams);
}

}  // namespace
}  // namespace mpisec::wire
