#include <gtest/gtest.h>

#include "shim/rma/lock_queue.hpp"

namespace mpisec::shim::rma {
namespace {

using Granted = std::vector<int>;

TEST(LockQueue, ExclusiveLocksAreGrantedInTheOrderOfAsking) {
    LockQueue lock;
    EXPECT_EQ(lock.ask(3, Held::exclusive), Granted{3});
    EXPECT_EQ(lock.ask(1, Held::exclusive), Granted{});
    EXPECT_EQ(lock.ask(2, Held::exclusive), Granted{});
    Granted granted;
    EXPECT_TRUE(lock.give_back(Held::exclusive, granted));
    EXPECT_EQ(granted, Granted{1});
    EXPECT_TRUE(lock.give_back(Held::exclusive, granted));
    EXPECT_EQ(granted, Granted{2});
}

/// Ranks 0 and 1 take both locks in different orders, 2 and 3 one each, and all get what they ask for.
TEST(LockQueue, SharedLocksDoNotWaitForEachOtherBehindAnExclusiveOne) {
    LockQueue first;
    LockQueue second;
    EXPECT_EQ(first.ask(0, Held::shared), Granted{0});
    EXPECT_EQ(second.ask(1, Held::shared), Granted{1});
    EXPECT_EQ(first.ask(2, Held::exclusive), Granted{});
    EXPECT_EQ(second.ask(3, Held::exclusive), Granted{});
    EXPECT_EQ(first.ask(1, Held::shared), Granted{1});
    EXPECT_EQ(second.ask(0, Held::shared), Granted{0});
    Granted granted;
    EXPECT_TRUE(first.give_back(Held::shared, granted));
    EXPECT_EQ(granted, Granted{});
    EXPECT_TRUE(first.give_back(Held::shared, granted));
    EXPECT_EQ(granted, Granted{2});
}

TEST(LockQueue, AllSharedLocksFollowAnExclusiveOneTogether) {
    LockQueue lock;
    EXPECT_EQ(lock.ask(0, Held::exclusive), Granted{0});
    EXPECT_EQ(lock.ask(1, Held::shared), Granted{});
    EXPECT_EQ(lock.ask(2, Held::exclusive), Granted{});
    EXPECT_EQ(lock.ask(3, Held::shared), Granted{});
    Granted granted;
    EXPECT_TRUE(lock.give_back(Held::exclusive, granted));
    EXPECT_EQ(granted, (Granted{1, 3}));
    EXPECT_TRUE(lock.give_back(Held::shared, granted));
    EXPECT_EQ(granted, Granted{});
    EXPECT_TRUE(lock.give_back(Held::shared, granted));
    EXPECT_EQ(granted, Granted{2});
}

TEST(LockQueue, WhatNobodyHasIsNotGivenBack) {
    LockQueue lock;
    Granted granted;
    EXPECT_FALSE(lock.give_back(Held::shared, granted));
    EXPECT_EQ(lock.ask(0, Held::shared), Granted{0});
    EXPECT_FALSE(lock.give_back(Held::exclusive, granted));
}

}  // namespace
}  // namespace mpisec::shim::rma
