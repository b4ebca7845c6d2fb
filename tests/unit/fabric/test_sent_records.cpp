// Queues of records between node peers: threads here, each with a mapping of its own.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <thread>

#include "fabric/sent_records.hpp"

namespace mpisec::fabric {

struct SentRecordsTest {
    /// As if this process had sent so many records to itself, and read them.
    static void skip(SentRecords& own, std::uint32_t count) {
        own.sending_[0].number = own.sending_[0].announced = own.receiving_[0].number = count;
    }
};

namespace {

std::string unique_name() {
    static int number = 0;
    return "/mpisec-test-records-" + std::to_string(getpid()) + "-" + std::to_string(number++);
}

void put(SentRecords& records, unsigned node_peer, std::uint64_t value) {
    records.announce(node_peer);
    SentRecord* record = records.next(node_peer);
    ASSERT_NE(record, nullptr);
    record->bytes = value;
    std::memset(record->check, static_cast<int>(value), sizeof record->check);
    records.publish(node_peer);
}

TEST(SentRecords, TwoMatesAndOneself) {
    const std::string name = unique_name();
    auto zero = SentRecords::attach(name, 2, 0), one = SentRecords::attach(name, 2, 1);
    ASSERT_TRUE(zero && one);
    EXPECT_EQ(shm_unlink(name.c_str()), -1) << "all node peers have it, so its name is gone";
    EXPECT_EQ(one->first(0), nullptr);
    for (std::uint64_t i = 0; i < 1000; ++i) {  // any number before the first is read
        put(*zero, 1, i);
        put(*one, 0, 5000 + i);
        put(*one, 1, 9000 + i);
    }
    for (std::uint64_t i = 0; i < 1000; ++i) {
        ASSERT_NE(one->first(0), nullptr);
        EXPECT_EQ(one->first(0)->bytes, i);
        EXPECT_EQ(zero->first(1)->bytes, 5000 + i);
        EXPECT_EQ(one->first(1)->bytes, 9000 + i);
        one->pop(0), zero->pop(1), one->pop(1);
    }
    EXPECT_EQ(one->first(0), nullptr);
    EXPECT_EQ(zero->first(1), nullptr);
}

TEST(SentRecords, AnnouncedBeforeTheyAreThere) {
    const std::string name = unique_name();
    auto zero = SentRecords::attach(name, 2, 0), one = SentRecords::attach(name, 2, 1);
    ASSERT_TRUE(zero && one);
    EXPECT_FALSE(one->more_announced(0));
    zero->announce(1);
    EXPECT_TRUE(one->more_announced(0));
    EXPECT_FALSE(one->more_announced(1));
    EXPECT_FALSE(zero->more_announced(1));
    EXPECT_EQ(one->first(0), nullptr);
    one->expect(0, 3);  // in vain
    zero->retract(1);
    EXPECT_FALSE(one->more_announced(0));
    for (std::uint64_t i = 0; i < 100; ++i) {  // through more than one chunk
        put(*zero, 1, i);
        one->expect(0, 1);
        EXPECT_TRUE(one->more_announced(0));
        one->pop(0);
        EXPECT_FALSE(one->more_announced(0));
    }
}

TEST(SentRecords, NewMemoryHoldsNoRecordWhenNumbersWrap) {
    auto records = SentRecords::attach(unique_name(), 1, 0);
    ASSERT_TRUE(records);
    constexpr std::uint32_t per_chunk = 63;
    SentRecordsTest::skip(*records, record_number - per_chunk);
    for (std::uint64_t i = 0; i < per_chunk; ++i) put(*records, 0, i);
    ASSERT_NE(records->next(0), nullptr);  // in a new chunk; its number will be 0
    for (std::uint64_t i = 0; i < per_chunk; ++i) {
        ASSERT_NE(records->first(0), nullptr) << i;
        records->pop(0);
    }
    EXPECT_EQ(records->first(0), nullptr) << "there is memory, but no record";
    put(*records, 0, 7);
    ASSERT_NE(records->first(0), nullptr);
    EXPECT_EQ(records->first(0)->bytes, 7u);
}

TEST(SentRecords, MemoryIsUsedAgain) {
    const std::string name = unique_name();
    auto zero = SentRecords::attach(name, 2, 0, 3 * 4096), one = SentRecords::attach(name, 2, 1, 3 * 4096);
    ASSERT_TRUE(zero && one);
    for (std::uint64_t i = 0; i < 10000; ++i) {  // three chunks are enough for ever
        put(*zero, 1, i);
        ASSERT_NE(one->first(0), nullptr) << i;
        EXPECT_EQ(one->first(0)->bytes, i);
        one->pop(0);
    }
}

TEST(SentRecords, WithoutMemoryThereIsNoRoomUntilSomeAreRead) {
    const std::string name = unique_name();
    auto zero = SentRecords::attach(name, 2, 0, 2 * 4096), one = SentRecords::attach(name, 2, 1, 2 * 4096);
    ASSERT_TRUE(zero && one);
    for (std::uint64_t i = 0; i < 2 * 63; ++i) put(*zero, 1, i);
    EXPECT_EQ(zero->next(1), nullptr);
    for (std::uint64_t i = 0; i < 64; ++i) {
        ASSERT_NE(one->first(0), nullptr);
        one->pop(0);
    }
    put(*zero, 1, 4711);
    for (std::uint64_t i = 64; i < 2 * 63; ++i) {
        EXPECT_EQ(one->first(0)->bytes, i);
        one->pop(0);
    }
    EXPECT_EQ(one->first(0)->bytes, 4711u);
}

TEST(SentRecords, WhatOneMateHasReadIsRoomForAnother) {
    const std::string name = unique_name();
    auto zero = SentRecords::attach(name, 2, 0, 3 * 4096), one = SentRecords::attach(name, 2, 1, 3 * 4096);
    ASSERT_TRUE(zero && one);
    for (std::uint64_t i = 0; i < 3 * 63; ++i) put(*zero, 1, i);
    EXPECT_EQ(zero->next(0), nullptr);
    for (std::uint64_t i = 0; i < 64; ++i) {
        ASSERT_NE(one->first(0), nullptr);
        one->pop(0);
    }
    ASSERT_NE(zero->next(0), nullptr);
    EXPECT_EQ(zero->first(0), nullptr) << "a record that node peer 1 has read, taken for one to node peer 0";
    put(*zero, 0, 4711);
    ASSERT_NE(zero->first(0), nullptr);
    EXPECT_EQ(zero->first(0)->bytes, 4711u);
    zero->pop(0);
    EXPECT_EQ(zero->first(0), nullptr);
    for (std::uint64_t i = 64; i < 3 * 63; ++i) {
        ASSERT_NE(one->first(0), nullptr);
        EXPECT_EQ(one->first(0)->bytes, i);
        one->pop(0);
    }
}

TEST(SentRecords, WithdrawnBeforeItIsRead) {
    const std::string name = unique_name();
    auto zero = SentRecords::attach(name, 1, 0);
    ASSERT_TRUE(zero);
    SentRecord* record = zero->next(0);
    const std::uint32_t number = zero->publish(0);
    zero->withdraw(0, *record, number);
    ASSERT_NE(zero->first(0), nullptr);
    EXPECT_TRUE(SentRecords::withdrawn(*zero->first(0)));
    zero->pop(0);
    record = zero->next(0);
    const std::uint32_t read = zero->publish(0);
    EXPECT_FALSE(SentRecords::withdrawn(*zero->first(0)));
    zero->pop(0);
    zero->withdraw(0, *record, read);
    EXPECT_FALSE(SentRecords::withdrawn(*record)) << "its place may be another record's by now";
}

TEST(SentRecords, ConcurrentlyEveryRecordOnceInOrder) {
    const std::string name = unique_name();
    auto zero = SentRecords::attach(name, 2, 0), one = SentRecords::attach(name, 2, 1);
    ASSERT_TRUE(zero && one);
    constexpr std::uint64_t count = 300'000;
    std::thread sender([&] {
        for (std::uint64_t i = 0; i < count; ++i) put(*zero, 1, i);
    });
    std::uint64_t wrong = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
        const SentRecord* record;
        while (!(record = one->first(0))) std::this_thread::yield();
        wrong += record->bytes != i || record->check[39] != static_cast<std::uint8_t>(i);
        one->pop(0);
    }
    sender.join();
    EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace mpisec::fabric
