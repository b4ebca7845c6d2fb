// S4: the ledger of nonces that debug and sanitizer builds keep: a repeated nonce is found whatever happened
// in between, and sequential ones cost one run.
#include "aead/nonce_ledger.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "wire/collective.hpp"
#include "wire/frame.hpp"
#include "wire/stream.hpp"

namespace mpisec::aead {
namespace {

constexpr KeyFingerprint one_key = {1}, other_key = {2};

wire::Nonce small(std::uint32_t epoch, std::uint64_t counter) {
    return wire::make_nonce({wire::Kind::small, epoch, counter});
}

TEST(NonceLedger, FindsARepeatInEveryLayoutOfNonces) {
    NonceLedger ledger;
    const std::vector<wire::Nonce> nonces = {
        small(0, 0),
        small(0, 1),
        small(1, 1),
        wire::make_nonce({wire::Kind::large_header, 0, 1}),
        small(0, wire::max_counter),
        wire::make_nonce({wire::Kind::small, 0, 2, {0xffff, 0}}),
        wire::make_nonce({wire::Kind::small, 0, 2, {0, 0xff}}),
        wire::segment_nonce(0, false),
        wire::segment_nonce(1, false),
        wire::segment_nonce(1, true),
        wire::sealed_block_nonce(7, 0, 0),
        wire::sealed_block_nonce(7, 1, 0),
        wire::sealed_block_nonce(7, 1, 2),
        wire::sealed_block_nonce(1u << 24 | 7, 1, 2),
    };
    for (const wire::Nonce& nonce : nonces) EXPECT_TRUE(ledger.record(one_key, nonce.data()));
    for (const wire::Nonce& nonce : nonces) EXPECT_FALSE(ledger.record(one_key, nonce.data()));
    for (const wire::Nonce& nonce : nonces) EXPECT_TRUE(ledger.record(other_key, nonce.data()));
    EXPECT_EQ(ledger.keys(), 2u);
    ledger.forget();
    EXPECT_TRUE(ledger.record(one_key, nonces[0].data()));
}

TEST(NonceLedger, AgreesWithAPlainSet) {
    std::mt19937_64 random(20261123);
    NonceLedger ledger;
    std::set<wire::Nonce> seen;
    for (int i = 0; i < 20000; ++i) {
        wire::Nonce nonce{};
        for (std::size_t at : {0, 2, 4, 8}) nonce[at] = static_cast<std::uint8_t>(random() % 12 << 4);
        ASSERT_EQ(ledger.record(one_key, nonce.data()), seen.insert(nonce).second) << i;
    }
}

TEST(NonceLedger, ManyMessagesAreFewRuns) {
    NonceLedger ledger;
    for (std::uint64_t i = 0; i < 100000; ++i) {
        ASSERT_TRUE(ledger.record(one_key, small(3, i).data()));
        ASSERT_TRUE(
            ledger.record(other_key, wire::sealed_block_nonce(static_cast<std::uint32_t>(i), 5, 1).data()));
    }
    EXPECT_EQ(ledger.runs(), 2u);
    NonceLedger small_one(2);
    for (std::uint8_t key = 0; key < 10; ++key)
        EXPECT_TRUE(small_one.record({key}, small(0, 0).data())) << "what is not recorded does not fail";
    EXPECT_EQ(small_one.keys(), 2u);
}

TEST(NonceLedger, FindsARepeatBetweenThreads) {
    NonceLedger ledger;
    std::atomic<int> repeats{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            for (std::uint64_t i = 0; i < 5000; ++i)
                if (!ledger.record(one_key, small(0, i).data())) ++repeats;
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(repeats, 3 * 5000);
}

TEST(NonceLedger, TellsWhenItCannotBeWritten) {
    NonceLedger ledger;
    ASSERT_TRUE(ledger.record(one_key, small(0, 1).data()));
    std::FILE* full = std::fopen("/dev/full", "w");
    ASSERT_NE(full, nullptr);
    EXPECT_FALSE(ledger.write(full));
    std::fclose(full);  // NOLINT(cert-err33-c): write() has told of it
}

#ifdef MPISEC_NONCE_LEDGER
Selection openssl() {
    Selection selection;
    selection.library.fill(load("openssl").value());
    return selection;
}

// The counter of this sender is broken: it stands still.
void seal_twice_with_one_counter() {
    const std::uint8_t key[max_key_bytes] = {1, 2, 3}, text[5] = {};
    std::uint8_t sealed[sizeof text + tag_bytes];
    for (int message = 0; message < 2; ++message) {
        KeySet keys(openssl(), key);  // dropped, and derived again
        if (!keys.seal(sealed, text, sizeof text, small(0, 41).data(), nullptr, 0)) std::exit(3);
    }
}

TEST(NonceLedgerDeath, SealingTwiceUnderOneNonceEndsTheProcess) {
    EXPECT_DEATH(seal_twice_with_one_counter(),
                 "a nonce was about to be used a second time under one key .*nonce 000010002900000000000000");
}
#endif

}  // namespace
}  // namespace mpisec::aead
