// AES-GCM whose vector counts inside the context (EVP_CTRL_GCM_SET_IV_FIXED, EVP_CTRL_GCM_IV_GEN), at every length of the vector.
#include <openssl/err.h>

#include <algorithm>
#include <set>

#include "support.hpp"

namespace mpisec::provider::test {
namespace {

/// A context that seals messages under vectors that count from `first`.
class Counting {
  public:
    Counting(OSSL_LIB_CTX* library, const Bytes& first) : n_(first.size()) {
        const Bytes key(16, 7);
        EXPECT_EQ(EVP_CipherInit_ex2(context, fetch(library, "AES-128-GCM"), key.data(), nullptr, 1, nullptr),
                  1);
        EXPECT_EQ(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_IVLEN, static_cast<int>(n_), nullptr), 1);
        begin_at(first);
    }
    void begin_at(Bytes first) {
        EXPECT_EQ(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_SET_IV_FIXED, -1, first.data()), 1);
    }
    /// Vector, ciphertext and tag of the next message; empty when it gets no vector.
    Bytes next() {
        Bytes message(n_ + 20 + 16);
        const Bytes text(20, 3);
        int n = 0;
        if (EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_IV_GEN, 0, message.data()) != 1) return {};
        std::uint8_t* at = message.data() + n_;
        EXPECT_EQ(EVP_CipherUpdate(context, at, &n, text.data(), 20), 1);
        EXPECT_EQ(EVP_CipherFinal_ex(context, at + 20, &n), 1);
        EXPECT_EQ(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, 16, at + 20), 1);
        return message;
    }
    Cipher context;

  private:
    std::size_t n_;
};

class Counters : public testing::TestWithParam<std::size_t> {};

/// From a first vector whose last byte is about to overflow. OpenSSL would carry past the beginning of a vector of one byte.
TEST_P(Counters, CountAsOpensslDoes) {
    Bytes first(GetParam(), 1);
    first.back() = GetParam() == 1 ? 0x70 : 0xfd;
    Counting mine(ours(), first), theirs(openssl(), first);
    std::set<Bytes> seen;
    for (int i = 0; i < 6; ++i) {
        const Bytes message = mine.next();
        EXPECT_EQ(message, theirs.next()) << "message " << i;
        EXPECT_TRUE(seen.insert(message).second) << "message " << i;
    }
}

INSTANTIATE_TEST_SUITE_P(EveryLength, Counters, testing::Range(std::size_t{1}, std::size_t{17}));

/// A vector of one byte has 256 values, one of two bytes 65,536: after these no message begins until the caller has chosen a vector.
TEST(ProviderCounters, NoVectorComesTwice) {
    for (const std::size_t length : {std::size_t{1}, std::size_t{2}}) {
        const std::size_t values = std::size_t{1} << 8 * length;
        const Bytes first(length, 0xc8);
        Counting mine(ours(), first);
        std::set<Bytes> seen;
        for (std::size_t i = 0; i < values; ++i)
            ASSERT_TRUE(seen.insert(mine.next()).second) << length << " bytes, message " << i;
        EXPECT_EQ(mine.next(), Bytes());
        mine.context.become_copy();
        EXPECT_EQ(mine.next(), Bytes());
        mine.begin_at(first);
        EXPECT_NE(mine.next(), Bytes());
    }
    ERR_clear_error();
}

/// What counted has another length then, and could come to a vector that it had before.
TEST(ProviderCounters, AVectorOfAnotherLengthDoesNotCountOn) {
    Counting mine(ours(), Bytes(12, 1));
    EXPECT_NE(mine.next(), Bytes());
    ASSERT_EQ(EVP_CIPHER_CTX_ctrl(mine.context, EVP_CTRL_AEAD_SET_IVLEN, 4, nullptr), 1);
    EXPECT_EQ(mine.next(), Bytes());
    mine.begin_at(Bytes(4, 1));
    EXPECT_NE(mine.next(), Bytes());
    ERR_clear_error();
}

}  // namespace
}  // namespace mpisec::provider::test
