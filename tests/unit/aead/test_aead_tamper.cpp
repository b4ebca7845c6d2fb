// S2 at its root: no library opens a message of which a single bit was changed, and what it leaves behind is
// zeros.
#include <sys/wait.h>
#include <unistd.h>

#ifdef MPISEC_NONCE_LEDGER
#include "aead/nonce_ledger.hpp"
#endif
#include "support.hpp"

namespace mpisec::aead::test {
namespace {

struct Message {
    Bytes sealed, nonce, ad;
    std::size_t n() const { return sealed.size() - tag_bytes; }
};

Message sealed_message(const Key& key, std::size_t n) {
    Message one{Bytes(n + tag_bytes), pattern(nonce_bytes, 5), pattern(40, 6)};
    Bytes plain = pattern(n, 9);
    EXPECT_TRUE(key.seal(one.sealed.data(), plain.data(), n, one.nonce.data(), one.ad.data(), one.ad.size()));
    return one;
}

testing::AssertionResult rejected(const Key& key, const Message& one) {
    Bytes apart(one.n(), 0xee), in_place = one.sealed;
    if (key.open(apart.data(), one.sealed.data(), one.n(), one.nonce.data(), one.ad.data(), one.ad.size()))
        return testing::AssertionFailure() << "opened";
    if (!all_zero(apart)) return testing::AssertionFailure() << "rejected, but left bytes behind";
    if (key.open(in_place.data(), in_place.data(), one.n(), one.nonce.data(), one.ad.data(), one.ad.size()))
        return testing::AssertionFailure() << "opened in place";
    in_place.resize(one.n());
    if (!all_zero(in_place)) return testing::AssertionFailure() << "rejected in place, but left bytes behind";
    return testing::AssertionSuccess();
}

void flip_every_bit(const Key& key, Message& one, Bytes Message::*part, const char* name) {
    Bytes& bytes = one.*part;
    for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
        bytes[bit / 8] ^= 1u << bit % 8;
        ASSERT_TRUE(rejected(key, one)) << "bit " << bit << " of the " << name << ", " << one.n() << " bytes";
        bytes[bit / 8] ^= 1u << bit % 8;
    }
}

TEST(Tamper, EverySingleBitIsNoticed) {
    for (const Implementation& one : implementations()) {
        SCOPED_TRACE(one.name());
        Key key = key_of(one, pattern(max_key_bytes, 1));
        for (std::size_t n : {0, 1, 15, 16, 17, 63, 100, 128, 257, 1040}) {
            Message message = sealed_message(key, n);
            flip_every_bit(key, message, &Message::sealed, "ciphertext or tag");
            flip_every_bit(key, message, &Message::nonce, "nonce");
            flip_every_bit(key, message, &Message::ad, "associated data");
            if (HasFatalFailure()) return;
            Bytes opened(n);  // and the message itself was good all the time
            ASSERT_TRUE(key.open(opened.data(), message.sealed.data(), n, message.nonce.data(),
                                 message.ad.data(), message.ad.size()));
            ASSERT_EQ(opened, pattern(n, 9));
        }
    }
}

TEST(Tamper, BitsOfALargeMessage) {
    for (const Implementation& one : implementations()) {
        SCOPED_TRACE(one.name());
        Key key = key_of(one, pattern(max_key_bytes, 1));
        Message message = sealed_message(key, 128 * 1024 + 5);
        for (std::size_t at = 0; at < message.sealed.size(); at += at < message.n() - 100 ? 4093 : 1) {
            message.sealed[at] ^= 0x10;
            ASSERT_TRUE(rejected(key, message)) << "byte " << at;
            message.sealed[at] ^= 0x10;
        }
    }
}

TEST(Tamper, OtherLengthsAndKeysAreNoticed) {
    for (const Implementation& one : implementations()) {
        SCOPED_TRACE(one.name());
        Key key = key_of(one, pattern(max_key_bytes, 1)), other = key_of(one, pattern(max_key_bytes, 2));
        Message good = sealed_message(key, 100);
        EXPECT_TRUE(rejected(other, good));
        Message changed = good;
        changed.sealed.pop_back();
        EXPECT_TRUE(rejected(key, changed)) << "one byte less";
        changed.sealed = good.sealed;
        changed.sealed.erase(changed.sealed.begin() + 99);
        EXPECT_TRUE(rejected(key, changed)) << "the ciphertext's last byte left out";
        changed = good;
        changed.ad.push_back(0);
        EXPECT_TRUE(rejected(key, changed)) << "a zero added to the associated data";
        changed.ad.clear();
        EXPECT_TRUE(rejected(key, changed)) << "no associated data";
        changed = good;
        std::fill(changed.sealed.end() - tag_bytes, changed.sealed.end(), 0);
        EXPECT_TRUE(rejected(key, changed)) << "a tag of zeros";
    }
}

/// The exit code of `body` in a child process.
template <class Body>
int in_child(Body body) {
    pid_t child = fork();
    if (child == 0) _exit(body());
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// S4: key memory is all zero in a forked child. A key state must not go on with a key of zeros there, nor,
// for want of a function pointer, with another cipher.
TEST(Forked, NoKeyIsUsableInAChild) {
    for (const Implementation& one : implementations()) {
        SCOPED_TRACE(one.name());
        Key used = key_of(one, pattern(max_key_bytes, 1)), fresh = key_of(one, pattern(max_key_bytes, 1));
        Message message = sealed_message(used, 100);
        EXPECT_EQ(in_child([&] {
                      for (const Key* key : {&used, &fresh}) {
                          Bytes out(100 + tag_bytes), plain(100, 0xee);
                          if (key->seal(out.data(), plain.data(), 100, message.nonce.data(), nullptr, 0))
                              return 1;
                          if (!rejected(*key, message)) return 2;
                      }
                      return 0;
                  }),
                  0);
        Bytes opened(100);
        EXPECT_TRUE(used.open(opened.data(), message.sealed.data(), 100, message.nonce.data(),
                              message.ad.data(), message.ad.size()));
    }
}

TEST(Forked, NoFurtherLibraryIsSetUpWithAWipedKey) {
    for (const Implementation& one : implementations()) {
        SCOPED_TRACE(one.name());
        Selection selection{one.cipher, {}};
        selection.library.fill(one.library);
        const Bytes bytes = pattern(max_key_bytes, 1), nonce(nonce_bytes), plain(100);
        KeySet key(selection, bytes.data());
        auto seals = [&] {
            Bytes out(plain.size() + tag_bytes);
            return key.seal(out.data(), plain.data(), plain.size(), nonce.data(), nullptr, 0);
        };
        EXPECT_EQ(in_child([&] { return seals() ? 1 : 0; }), 0);
        EXPECT_TRUE(seals());
#ifdef MPISEC_NONCE_LEDGER
        forget_nonces();  // the next library has the same key
#endif
    }
}

}  // namespace
}  // namespace mpisec::aead::test
