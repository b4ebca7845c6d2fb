// Every library against every other: the same ciphertext, opened by all, in place and apart, at any size and
// alignment.
#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <thread>

#include "../required.hpp"
#include "support.hpp"

namespace mpisec::aead::test {
namespace {

constexpr std::uint8_t canary = 0xc5;

std::vector<std::size_t> sizes() {
    std::vector<std::size_t> all;
    for (std::size_t n = 0; n <= 100; ++n) all.push_back(n);
    for (std::size_t around : {128, 256, 512, 1024, 4096, 16384, 65536})
        for (std::size_t n = around - 17; n <= around + 17; ++n) all.push_back(n);
    all.push_back(1000003);
    return all;
}

/// A buffer between canaries, off the natural alignment by `shift`.
class Guarded {
  public:
    Guarded(std::size_t n, std::size_t shift)
        : n_(n), bytes_(n + 64, canary), at_(bytes_.data() + 16 + shift) {}
    std::uint8_t* data() { return at_; }
    Bytes content(std::size_t n) const { return Bytes(at_, at_ + n); }
    bool intact() const {
        auto outside = [&](const std::uint8_t& byte) { return &byte < at_ || &byte >= at_ + n_; };
        return std::all_of(bytes_.begin(), bytes_.end(),
                           [&](const std::uint8_t& byte) { return !outside(byte) || byte == canary; });
    }

  private:
    std::size_t n_;
    Bytes bytes_;
    std::uint8_t* at_;
};

Bytes seal(const Key& key, const Bytes& plain, const Bytes& nonce, const Bytes& ad, bool in_place,
           std::size_t shift) {
    std::size_t n = plain.size();
    Guarded to(n + tag_bytes, shift);
    std::copy(plain.begin(), plain.end(), to.data());
    const std::uint8_t* from = in_place ? to.data() : plain.data();
    EXPECT_TRUE(key.seal(to.data(), from, n, nonce.data(), ad.data(), ad.size()));
    EXPECT_TRUE(to.intact()) << "seal wrote outside its buffer, " << n << " bytes";
    return to.content(n + tag_bytes);
}

void open_everywhere(const Key& key, const Bytes& sealed, const Bytes& plain, const Bytes& nonce,
                     const Bytes& ad, std::size_t shift) {
    std::size_t n = plain.size();
    Guarded apart(n, shift), in_place(n + tag_bytes, shift);
    std::copy(sealed.begin(), sealed.end(), in_place.data());
    EXPECT_TRUE(key.open(apart.data(), sealed.data(), n, nonce.data(), ad.data(), ad.size()));
    EXPECT_TRUE(key.open(in_place.data(), in_place.data(), n, nonce.data(), ad.data(), ad.size()));
    EXPECT_EQ(apart.content(n), plain);
    EXPECT_EQ(in_place.content(n), plain);
    EXPECT_TRUE(apart.intact() && in_place.intact()) << "open wrote outside its buffer, " << n << " bytes";
}

TEST(Cross, EveryLibrarySealsAndOpensAlike) {
    const Bytes key_bytes = pattern(max_key_bytes, 1);
    std::map<Cipher, std::vector<Implementation>> by_cipher;
    for (const Implementation& one : implementations()) by_cipher[one.cipher].push_back(one);
    for (auto& [cipher, all] : by_cipher) {
        std::vector<Key> keys;
        for (const Implementation& one : all) keys.push_back(key_of(one, key_bytes));
        std::uint32_t seed = 0;
        for (std::size_t n : sizes()) {
            ++seed;
            Bytes plain = pattern(n, seed), nonce = pattern(nonce_bytes, seed + 7000),
                  ad = pattern(seed * 7 % 90, seed);
            Bytes reference = seal(keys[0], plain, nonce, ad, false, 0);
            for (std::size_t i = 0; i < all.size(); ++i) {
                SCOPED_TRACE(all[i].name() + ", " + std::to_string(n) + " bytes");
                ASSERT_EQ(seal(keys[i], plain, nonce, ad, false, seed % 16), reference);
                ASSERT_EQ(seal(keys[i], plain, nonce, ad, true, seed % 16), reference);
                open_everywhere(keys[i], reference, plain, nonce, ad, seed % 16);
                if (HasFailure()) return;
            }
        }
    }
}

TEST(Cross, EveryLibraryIsBuilt) {
    const std::vector<std::string> there = available();
    for (const char* name : {"openssl", "boringssl", "sodium", "cryptopp", "ipsec-mb", "ipp", "aegis"})
        if (std::find(there.begin(), there.end(), name) == there.end())
            MPISEC_NOT_TESTED("this build is without the plug-in " << name);
}

TEST(Cross, EveryCommonCipherHasSeveralLibraries) {
    std::map<Cipher, std::set<std::string>> libraries;
    for (const Implementation& one : implementations())
        libraries[one.cipher].insert(std::string(one.library->name()));
    for (Cipher cipher : {Cipher::aes_128_gcm, Cipher::aes_256_gcm, Cipher::chacha20_poly1305})
        if (libraries[cipher].size() < 2)
            MPISEC_NOT_TESTED("only one library offers " << info(cipher).name << " in this build");
}

TEST(Cross, EmptyMessageMayComeWithNullPointers) {
    for (const Implementation& one : implementations()) {
        SCOPED_TRACE(one.name());
        Key key = key_of(one, pattern(max_key_bytes, 2));
        Bytes nonce = pattern(nonce_bytes, 3), sealed(tag_bytes);
        EXPECT_TRUE(key.seal(sealed.data(), nullptr, 0, nonce.data(), nullptr, 0));
        EXPECT_TRUE(key.open(nullptr, sealed.data(), 0, nonce.data(), nullptr, 0));
        sealed[3] ^= 1;
        EXPECT_FALSE(key.open(nullptr, sealed.data(), 0, nonce.data(), nullptr, 0));
    }
}

TEST(Cross, OneKeyServesManyMessagesAfterAForgery) {
    for (const Implementation& one : implementations()) {
        SCOPED_TRACE(one.name());
        Key key = key_of(one, pattern(max_key_bytes, 4));
        for (std::uint32_t i = 0; i < 200; ++i) {
            Bytes plain = pattern(i * 3, i), nonce = pattern(nonce_bytes, i), opened(plain.size());
            Bytes sealed(plain.size() + tag_bytes);
            ASSERT_TRUE(key.seal(sealed.data(), plain.data(), plain.size(), nonce.data(), nullptr, 0));
            Bytes forged = sealed;
            forged.back() ^= 1;
            ASSERT_FALSE(key.open(opened.data(), forged.data(), plain.size(), nonce.data(), nullptr, 0));
            ASSERT_TRUE(key.open(opened.data(), sealed.data(), plain.size(), nonce.data(), nullptr, 0));
            ASSERT_EQ(opened, plain);
        }
    }
}

TEST(Cross, ThreadsWithKeysOfTheirOwn) {
    std::atomic<int> failures{0};
    for (const Implementation& one : implementations()) {
        std::vector<std::thread> threads;
        for (std::uint32_t t = 0; t < 4; ++t)
            threads.emplace_back([&, t] {
                Result<Key> key = one.library->make_key(one.cipher, pattern(max_key_bytes, t).data());
                for (std::uint32_t i = 0; i < 200 && key; ++i) {
                    Bytes plain = pattern(i * 11, t), nonce = pattern(nonce_bytes, i),
                          sealed(plain.size() + tag_bytes);
                    Bytes opened(plain.size());
                    if (!key->seal(sealed.data(), plain.data(), plain.size(), nonce.data(), nullptr, 0) ||
                        !key->open(opened.data(), sealed.data(), plain.size(), nonce.data(), nullptr, 0) ||
                        opened != plain)
                        ++failures;
                }
                if (!key) ++failures;
            });
        for (std::thread& thread : threads) thread.join();
        EXPECT_EQ(failures, 0) << one.name();
    }
}

}  // namespace
}  // namespace mpisec::aead::test
