#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "hex.hpp"
#include "keys/hkdf.hpp"
#include "keys/key_file.hpp"
#include "keys/schedule.hpp"

namespace mpisec::keys {
namespace {

using test::hex;
using test::unhex;

Secret counting_secret() {
    Secret secret;
    std::iota(secret.data(), secret.data() + secret_bytes, std::uint8_t{0});
    return secret;
}

TEST(Sha256, Fips180Examples) {
    EXPECT_EQ(hex(sha256(as_bytes("abc"))),
              "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(hex(sha256({})), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(HmacSha256, Rfc4231) {
    struct Case {
        std::vector<std::uint8_t> key, data;
        const char* expected;
    };
    const Case cases[] = {
        {std::vector<std::uint8_t>(20, 0x0b), unhex("4869205468657265"),
         "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
        {unhex("4a656665"), unhex("7768617420646f2079612077616e7420666f72206e6f7468696e673f"),
         "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
        // Case 6: a key longer than a block.
        {std::vector<std::uint8_t>(131, 0xaa),
         unhex("54657374205573696e67204c6172676572205468616e20426c6f636b2d53697a65204b6579202d2048617368204b6"
               "579204669727374"),
         "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
    };
    for (const Case& c : cases) {
        Digest mac;
        HmacSha256(c.key).update(c.data).finish(mac.data());
        EXPECT_EQ(hex(mac), c.expected);
    }
}

TEST(Hkdf, Rfc5869) {
    struct Case {
        const char *ikm, *salt, *info, *prk, *okm;
    };
    const Case cases[] = {
        {"0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b", "000102030405060708090a0b0c", "f0f1f2f3f4f5f6f7f8f9",
         "077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5",
         "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"},
        {"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f303"
         "132333435363738393a3b3c3d"
         "3e3f404142434445464748494a4b4c4d4e4f",
         "606162636465666768696a6b6c6d6e6f707172737475767778797a7b7c7d7e7f808182838485868788898a8b8c8d8e8f909"
         "192939495969798999a9b9c9d"
         "9e9fa0a1a2a3a4a5a6a7a8a9aaabacadaeaf",
         "b0b1b2b3b4b5b6b7b8b9babbbcbdbebfc0c1c2c3c4c5c6c7c8c9cacbcccdcecfd0d1d2d3d4d5d6d7d8d9dadbdcdddedfe0e"
         "1e2e3e4e5e6e7e8e9eaebeced"
         "eeeff0f1f2f3f4f5f6f7f8f9fafbfcfdfeff",
         "06a6b88c5853361a06104c9ceb35b45cef760014904671014a193f40c15fc244",
         "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41c65e590e09da3"
         "275600c2f09b8367793a9aca3"
         "db71cc30c58179ec3e87c14c01d5c1f3434f1d87"},
        {"0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b", "", "",
         "19ef24a32c717b167f33a91d6f648bdf96596776afdb6377ac434c1c293ccb04",
         "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8"},
    };
    for (const Case& c : cases) {
        Digest prk;
        hkdf_extract(unhex(c.salt), unhex(c.ikm), prk.data());
        EXPECT_EQ(hex(prk), c.prk);
        std::vector<std::uint8_t> okm(unhex(c.okm).size());
        hkdf_expand(prk, unhex(c.info), okm);
        EXPECT_EQ(hex(okm), c.okm);
    }
}

// Expected values from Python's hmac module, over the info strings that schedule.cpp documents.
TEST(Schedule, KnownAnswers) {
    PairSecret pair = pair_secret(counting_secret(), 3, 1000, 7);
    EXPECT_EQ(hex(pair.aead.span()), "011d423479a9b1327c57ab6d006a7ab2647f48effc5c6c32f37b969996d48d43");
    EXPECT_EQ(hex(pair.message.span()), "0efd782f9e77868bb6609b72670be796955cec6bb58e71729660abe1da37c908");
    std::uint8_t key[secret_bytes];
    message_key(pair.message, 0x0102030405060708, key);
    EXPECT_EQ(hex(key), "98cf72a4fd2a29b506ed4724746c648712a7e09eba4cef378684824e76daf76c");
    same_node_key(counting_secret(), 5, key);
    EXPECT_EQ(hex(key), "da71d00756e7f6008b2189f669366d93a82bce1f6d6683021855bff127658071");
    std::array<std::uint8_t, 4160> hash_key;
    same_node_hash_key(counting_secret(), 5, hash_key);
    EXPECT_EQ(hex(sha256(hash_key)), "0be7499e1a1b2d78e8016990c8ff97dd5331f3fffb9a8150fbd54b88383ea7e6");
    std::array<std::uint8_t, 16> message;
    std::iota(message.begin(), message.end(), std::uint8_t{0});
    partitioned_key(counting_secret(), message, 5, key);
    EXPECT_EQ(hex(key), "414fa5b01daa2dcb20972c0ed345a92d59df13d3db97dc512c86cb98da670eb8");
    EXPECT_EQ(message_weight(counting_secret(), 3, 1000), 0xef7f78aa934590bb);
    EXPECT_EQ(fingerprint(counting_secret()), "a5fea65a61d210dd");
}

// S4: another direction, epoch, job secret or counter is another key.
TEST(Schedule, EveryInputCounts) {
    Secret job_secret = counting_secret(), other = counting_secret();
    other.data()[31] ^= 1;
    std::vector<std::string> seen;
    auto add = [&seen](const PairSecret& pair) {
        seen.push_back(hex(pair.aead.span()));
        seen.push_back(hex(pair.message.span()));
    };
    add(pair_secret(job_secret, 1, 2, 0));
    add(pair_secret(job_secret, 2, 1, 0));
    add(pair_secret(job_secret, 1, 2, 1));
    add(pair_secret(job_secret, 1, 258, 0));
    add(pair_secret(other, 1, 2, 0));
    PairSecret pair = pair_secret(job_secret, 1, 2, 0);
    for (std::uint64_t counter :
         {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 32, std::uint64_t{1} << 63}) {
        std::uint8_t key[secret_bytes];
        message_key(pair.message, counter, key);
        seen.push_back(hex(key));
    }
    for (std::int32_t node : {0, 1, 256}) {
        std::uint8_t key[secret_bytes];
        same_node_key(job_secret, node, key);
        seen.push_back(hex(key));
        same_node_hash_key(job_secret, node, key);
        seen.push_back(hex(key));
    }
    for (std::uint8_t message : {0, 1})
        for (std::uint64_t start : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 40}) {
            const std::array<std::uint8_t, 16> name = {message};
            std::uint8_t key[secret_bytes];
            partitioned_key(job_secret, name, start, key);
            seen.push_back(hex(key));
        }
    std::sort(seen.begin(), seen.end());
    EXPECT_EQ(std::adjacent_find(seen.begin(), seen.end()), seen.end());
}

}  // namespace
}  // namespace mpisec::keys
