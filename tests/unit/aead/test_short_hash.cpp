// The keyed hash of short messages within a node.
#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "aead/short_hash.hpp"
#include "base/hex.hpp"
#include "keys/schedule.hpp"

namespace mpisec::aead {
namespace {

using Key = std::array<std::uint8_t, ShortHash::key_bytes>;

Key key_of(std::int32_t node) {
    keys::Secret secret;
    std::iota(secret.data(), secret.data() + keys::secret_bytes, std::uint8_t{0});
    Key key;
    keys::same_node_hash_key(secret, node, key);
    return key;
}

std::vector<std::uint8_t> message(std::size_t n) {
    std::vector<std::uint8_t> bytes(n);
    for (std::size_t i = 0; i < n; ++i) bytes[i] = static_cast<std::uint8_t>(i * 7 + 3);
    return bytes;
}

std::string hash_of(const ShortHash& hash, const std::uint8_t* bytes, std::size_t n) {
    std::array<std::uint8_t, ShortHash::hash_bytes> out;
    hash(bytes, n, out.data());
    return hex(out);
}

/// Made with a few lines of Python from the definition in the header.
TEST(ShortHash, KnownAnswers) {
    const ShortHash hash(key_of(5));
    const auto bytes = message(ShortHash::longest);
    EXPECT_EQ(hash_of(hash, bytes.data(), 41),
              "79abf9af71c4b5b7310bffbb53860423577ef368f4a1123fb59440491970f173");
    EXPECT_EQ(hash_of(hash, bytes.data(), 100),
              "f3d2d6266911a7f0bedcc5cb7c209a5b2bdd725193f19c97c6274ab1de086f5a");
    EXPECT_EQ(hash_of(hash, bytes.data(), 4096),
              "56a98d4adca102178bcf97d0780698170d9903653ff085a5ba97e210c8726d40");
}

TEST(ShortHash, WithAndWithoutWideInstructions) {
    const ShortHash hash(key_of(1));
    const auto bytes = message(ShortHash::longest + 64);
    for (std::size_t n = 0; n <= ShortHash::longest; n += n < 300 ? 1 : 251)
        for (std::size_t offset : {std::size_t{0}, std::size_t{1}, n % 64}) {
            std::array<std::uint8_t, ShortHash::hash_bytes> out;
            hash.portable(bytes.data() + offset, n, out.data());
            ASSERT_EQ(hash_of(hash, bytes.data() + offset, n), hex(out)) << n << " bytes at " << offset;
        }
}

TEST(ShortHash, EveryByteCounts) {
    const ShortHash hash(key_of(1));
    for (std::size_t n : {std::size_t{41}, std::size_t{64}, std::size_t{200}, ShortHash::longest}) {
        auto bytes = message(n);
        std::set<std::string> seen = {hash_of(hash, bytes.data(), n)};
        for (std::size_t i = 0; i < n; ++i) {
            bytes[i] ^= static_cast<std::uint8_t>(1 << i % 8);
            seen.insert(hash_of(hash, bytes.data(), n));
            bytes[i] ^= static_cast<std::uint8_t>(1 << i % 8);
        }
        EXPECT_EQ(seen.size(), n + 1) << n;
    }
}

/// Words that change places within a pair, pairs and whole runs of 64 bytes that do.
TEST(ShortHash, PlacesCount) {
    const ShortHash hash(key_of(1));
    const auto sent = message(256);
    const std::string right = hash_of(hash, sent.data(), sent.size());
    for (std::size_t run : {8, 16, 64}) {
        auto swapped = sent;
        std::swap_ranges(swapped.begin(), swapped.begin() + static_cast<std::ptrdiff_t>(run),
                         swapped.begin() + static_cast<std::ptrdiff_t>(run));
        EXPECT_NE(hash_of(hash, swapped.data(), swapped.size()), right) << run;
    }
}

TEST(ShortHash, TheKeyCounts) {
    const auto bytes = message(64);
    Key key = key_of(1);
    std::set<std::string> seen = {hash_of(ShortHash(key_of(2)), bytes.data(), 64)};
    for (std::size_t i = 0; i <= 128; ++i) {  // 64 bytes need 128 of the key
        seen.insert(hash_of(ShortHash(key), bytes.data(), 64));
        if (i < 128) key[i] ^= 0x10;
    }
    EXPECT_EQ(seen.size(), 130u);
}

}  // namespace
}  // namespace mpisec::aead
