// The order of a node's records against a model that tries every assignment.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <vector>

#include "wire/content_order.hpp"

namespace mpisec::wire {
namespace {

Content content(unsigned word, std::uint64_t bytes = 4) {
    Content made;
    made.bytes = bytes;
    made.check[0] = static_cast<std::uint8_t>(word);
    return made;
}

TEST(ContentOrder, InOrderNothingStays) {
    ContentOrder order;
    for (std::uint32_t i = 0; i < 100; ++i) {
        order.sent(i + 1, content(i));
        EXPECT_TRUE(order.received(i, {content(i), false}, i + 1));
        EXPECT_TRUE(order.empty());
    }
}

TEST(ContentOrder, WhatWasNotSentIsRefusedAndTakesNothing) {
    ContentOrder order;
    EXPECT_FALSE(order.received(0, {content(7), false}, 1));
    order.sent(1, content(1));
    EXPECT_FALSE(order.received(1, {content(7), false}, 2));
    EXPECT_TRUE(order.received(2, {content(1), false}, 3));
    EXPECT_TRUE(order.empty());
}

TEST(ContentOrder, ReceivesThatAreSeenInReverse) {
    ContentOrder order;
    for (std::uint32_t i = 0; i < 50; ++i) order.sent(i + 1, content(i));
    for (std::uint32_t i = 50; i-- > 0;) EXPECT_TRUE(order.received(i, {content(i), false}, i ? 0 : 50));
    EXPECT_TRUE(order.empty());
}

TEST(ContentOrder, SwappedMessagesAreRefused) {
    ContentOrder order;
    order.sent(1, content(1));
    order.sent(2, content(2));
    // Perhaps: receive 0 is open, but nothing is before 1.
    EXPECT_TRUE(order.received(1, {content(1), false}, 0));
    EXPECT_FALSE(order.received(0, {content(2), false}, 2));
}

TEST(ContentOrder, ACopyOfAGenuineMessageTakesItsRecordOnlyOnce) {
    ContentOrder order;
    order.sent(1, content(1));
    EXPECT_TRUE(order.received(0, {content(1), false}, 1));
    EXPECT_FALSE(order.received(1, {content(1), false}, 2));
}

TEST(ContentOrder, TruncatedMessagesWereLonger) {
    ContentOrder order;
    order.sent(1, content(1, 100));
    EXPECT_FALSE(order.received(0, {content(0, 100), true}, 1));
    EXPECT_TRUE(order.received(1, {content(0, 99), true}, 2));
    EXPECT_TRUE(order.empty());
}

TEST(ContentOrder, WithdrawnMessagesAreNotWaitedFor) {
    ContentOrder order;
    order.sent(1, content(1));
    order.sent(2, content(2));
    order.withdrawn(1);
    EXPECT_TRUE(order.received(0, {content(2), false}, 1));
    EXPECT_TRUE(order.empty());
}

/// All receives so far, whether complete or not, with what they got; tries every way to give the complete
/// ones messages, in order, those before `oldest` the first ones without a gap.
class Model {
  public:
    std::vector<Content> sent;
    std::vector<std::optional<Content>> receives;
    bool possible(std::size_t oldest) const { return assign(0, 0, oldest); }

  private:
    bool assign(std::size_t receive, std::size_t message, std::size_t oldest) const {
        if (receive == receives.size()) return true;
        if (!receives[receive]) return assign(receive + 1, message, oldest);
        const std::size_t last = receive < oldest ? std::min(message + 1, sent.size()) : sent.size();
        for (std::size_t m = message; m < last; ++m)
            if (sent[m] == *receives[receive] && assign(receive + 1, m + 1, oldest)) return true;
        return false;
    }
};

TEST(ContentOrder, AgreesWithTryingEveryAssignment) {
    std::mt19937 random(20261123);
    auto below = [&](unsigned limit) {
        return std::uniform_int_distribution<unsigned>(0, limit - 1)(random);
    };
    int refused = 0, accepted = 0;
    for (int run = 0; run < 20000; ++run) {
        const unsigned receives = 1 + below(6), messages = 1 + below(6);
        ContentOrder order;
        Model model;
        model.receives.resize(receives);
        for (std::uint32_t i = 0; i < messages; ++i) {
            model.sent.push_back(content(below(3)));
            order.sent(i + 1, model.sent.back());
        }
        std::vector<unsigned> completing(receives);
        for (unsigned i = 0; i < receives; ++i) completing[i] = i;
        std::shuffle(completing.begin(), completing.end(), random);
        std::vector<bool> complete(receives, false);
        for (unsigned position : completing) {
            complete[position] = true;
            const auto oldest = static_cast<std::size_t>(std::find(complete.begin(), complete.end(), false) -
                                                         complete.begin());
            model.receives[position] =
                below(4) ? model.sent[std::min(position, messages - 1)] : content(below(3));
            const bool expected = model.possible(oldest);
            ASSERT_EQ(order.received(position, {*model.receives[position], false}, oldest), expected) << run;
            ++(expected ? accepted : refused);
            if (!expected) break;  // a receive that failed is none of the model's
        }
    }
    EXPECT_GT(refused, 1000);
    EXPECT_GT(accepted, 1000);
}

}  // namespace
}  // namespace mpisec::wire
