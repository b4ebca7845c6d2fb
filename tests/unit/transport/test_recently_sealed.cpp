// Which bytes are taken for a sealed message behind an MPI library's header: none that MPIsec has not sealed.
#include "transport/recently_sealed.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>
#include <vector>

namespace mpisec::transport {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes message(std::size_t n, unsigned seed) {
    Bytes bytes(n);
    std::mt19937 random(seed);
    std::ranges::generate(bytes, [&] { return static_cast<std::uint8_t>(random()); });
    return bytes;
}

/// Behind a header of so many bytes.
Bytes copied(const Bytes& message, std::size_t header, std::size_t n) {
    Bytes piece(header, 0x5a);
    piece.insert(piece.end(), message.begin(), message.begin() + static_cast<std::ptrdiff_t>(n));
    return piece;
}

constexpr std::size_t found = RecentlySealed::longest_header;

std::size_t begin_of(const RecentlySealed& sealed, const Bytes& piece) {
    return sealed.sealed_from(piece.data(), piece.size());
}

TEST(RecentlySealed, IsFoundBehindHeaders) {
    RecentlySealed sealed;
    const Bytes whole = message(20'000, 1), other = message(9'000, 2);
    sealed.note(whole.data(), whole.size());
    sealed.note(other.data(), other.size());
    for (const std::size_t header : {0, 14, 62, 128}) {
        EXPECT_EQ(begin_of(sealed, copied(whole, header, whole.size())), found);
        EXPECT_EQ(begin_of(sealed, copied(whole, header, 10'000)), found) << "its beginning";
        EXPECT_EQ(begin_of(sealed, copied(other, header, other.size())), found);
    }
}

TEST(RecentlySealed, NothingElseIs) {
    RecentlySealed sealed;
    const Bytes whole = message(20'000, 1);
    Bytes unknown = copied(whole, 62, whole.size());
    EXPECT_EQ(begin_of(sealed, unknown), unknown.size()) << "nothing has been sealed";
    sealed.note(whole.data(), whole.size());
    Bytes changed = unknown;
    changed[62 + 12] ^= 1;
    EXPECT_EQ(begin_of(sealed, changed), changed.size());
    Bytes longer = unknown;
    longer.push_back(0);
    EXPECT_EQ(begin_of(sealed, longer), longer.size()) << "what follows the message is the library's";
    const Bytes deeper = copied(whole, 200, whole.size());
    EXPECT_EQ(begin_of(sealed, deeper), deeper.size());
    const Bytes tail(whole.begin() + 100, whole.end());
    EXPECT_EQ(begin_of(sealed, tail), tail.size());
    const Bytes zeros(20'000, 0);
    EXPECT_EQ(begin_of(sealed, zeros), zeros.size()) << "as entries that hold nothing";
}

TEST(RecentlySealed, ShortOnesAreNotLookedFor) {
    RecentlySealed sealed;
    const Bytes brief = message(RecentlySealed::shortest - 1, 1);
    sealed.note(brief.data(), brief.size());
    EXPECT_EQ(begin_of(sealed, brief), brief.size());
}

TEST(RecentlySealed, OnlyTheLastOnes) {
    RecentlySealed sealed;
    const Bytes first = message(10'000, 0);
    sealed.note(first.data(), first.size());
    for (unsigned i = 1; i <= 16; ++i) sealed.note(message(10'000, i).data(), 10'000);
    EXPECT_EQ(begin_of(sealed, first), first.size());
}

TEST(RecentlySealed, ThreadsMayNoteAndLook) {
    RecentlySealed sealed;
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    // More than there are cores, so that some are interrupted while they write.
    for (unsigned thread = 0; thread < 8; ++thread)
        threads.emplace_back([&, thread] {
            const Bytes shorter = message(10'000, 10 + thread), longer = message(20'000, 20 + thread);
            Bytes followed = shorter;
            followed.resize(15'000);
            for (int i = 0; i < 10'000; ++i) {
                sealed.note(longer.data(), longer.size());
                sealed.note(shorter.data(), shorter.size());
                if (begin_of(sealed, followed) != followed.size()) ++wrong;
            }
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0) << "a message's mark with another one's length";
}

}  // namespace
}  // namespace mpisec::transport
