// The same calls to OpenSSL's default provider and to this one give the same answers: random scripts, the same in
// every run (MPISEC_PROVIDER_SCRIPTS: how many per cipher; MPISEC_PROVIDER_SEED: others).
#include <algorithm>
#include <random>

#include "../../fuzz/provider_script.hpp"
#include "support.hpp"

namespace mpisec::provider::test {
namespace {

unsigned long setting(const char* name, unsigned long otherwise) {
    const char* text = std::getenv(name);
    return text ? std::strtoul(text, nullptr, 10) : otherwise;
}

class Differential : public testing::TestWithParam<const char*> {};

TEST_P(Differential, RandomScripts) {
    const EVP_CIPHER *expected = fetch(openssl(), GetParam()), *got = fetch(ours(), GetParam());
    ASSERT_TRUE(expected);
    if (!got) GTEST_SKIP() << "no library here has " << GetParam();
    std::mt19937 random(static_cast<unsigned>(setting("MPISEC_PROVIDER_SEED", 1)));
    const unsigned long scripts = setting("MPISEC_PROVIDER_SCRIPTS", 400);
    for (unsigned long i = 0; i < scripts; ++i) {
        Bytes script(81 + random() % 700);
        for (std::uint8_t& one : script) one = static_cast<std::uint8_t>(random());
        const std::string difference = differing_step(expected, got, script.data(), script.size());
        ASSERT_EQ(difference, "") << "script " << i;
    }
}

INSTANTIATE_TEST_SUITE_P(Every, Differential, testing::ValuesIn(script_ciphers), [](const auto& one) {
    std::string name = one.param;
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
});

/// What EVP asks about an algorithm.
TEST_P(Differential, Traits) {
    const EVP_CIPHER *expected = fetch(openssl(), GetParam()), *got = fetch(ours(), GetParam());
    if (!got) GTEST_SKIP() << "no library here has " << GetParam();
    EXPECT_EQ(EVP_CIPHER_get_mode(expected), EVP_CIPHER_get_mode(got));
    EXPECT_EQ(EVP_CIPHER_get_flags(expected), EVP_CIPHER_get_flags(got));
    EXPECT_EQ(EVP_CIPHER_get_block_size(expected), EVP_CIPHER_get_block_size(got));
    EXPECT_EQ(EVP_CIPHER_get_iv_length(expected), EVP_CIPHER_get_iv_length(got));
    EXPECT_EQ(EVP_CIPHER_get_key_length(expected), EVP_CIPHER_get_key_length(got));
    EXPECT_EQ(EVP_CIPHER_get_nid(expected), EVP_CIPHER_get_nid(got));
    EXPECT_EQ(EVP_CIPHER_get_type(expected), EVP_CIPHER_get_type(got));
}

/// Large buffers go to several threads, and have several sizes' libraries in turn.
TEST_P(Differential, LargeBuffers) {
    const EVP_CIPHER *expected = fetch(openssl(), GetParam()), *got = fetch(ours(), GetParam());
    if (!got) GTEST_SKIP() << "no library here has " << GetParam();
    if (std::string(GetParam()).find("CFB8") != std::string::npos ||
        std::string(GetParam()).find("CFB1") != std::string::npos)
        GTEST_SKIP() << "slow in OpenSSL";
    std::mt19937 random(1);
    Bytes key(64), iv(16, 0xff), in(1'200'017);  // the counter overflows
    for (Bytes* all : {&key, &in})
        for (std::uint8_t& one : *all) one = static_cast<std::uint8_t>(random());
    for (bool encrypt : {true, false}) {
        const bool steals = std::string(GetParam()).ends_with("CTS");
        Cipher one, other;
        Bytes left(in.size() + 32), right(in.size() + 32);
        ASSERT_EQ(EVP_CipherInit_ex2(one, expected, key.data(), iv.data(), encrypt, nullptr), 1);
        ASSERT_EQ(EVP_CipherInit_ex2(other, got, key.data(), iv.data(), encrypt, nullptr), 1);
        std::copy(in.begin(), in.end(), right.begin());  // in place
        for (std::size_t from = 0; from < in.size();) {
            const std::size_t n =
                steals ? in.size() : std::min(in.size() - from, from ? std::size_t{600'000} : 100'000);
            int n1 = 0, n2 = 0;
            ASSERT_EQ(EVP_CipherUpdate(one, left.data() + from, &n1, in.data() + from, static_cast<int>(n)),
                      1);
            ASSERT_EQ(
                EVP_CipherUpdate(other, right.data() + from, &n2, right.data() + from, static_cast<int>(n)),
                1);
            ASSERT_EQ(n1, n2);
            ASSERT_TRUE(std::equal(left.begin() + static_cast<long>(from),
                                   left.begin() + static_cast<long>(from) + n1,
                                   right.begin() + static_cast<long>(from)))
                << encrypt << " from " << from;
            from += n;
            if (n1 != static_cast<int>(n))
                break;  // a block is held back: the pieces no longer lie where they were
        }
    }
}

}  // namespace
}  // namespace mpisec::provider::test
