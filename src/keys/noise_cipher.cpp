#include "keys/noise_cipher.hpp"

#include <openssl/evp.h>

#include <cstring>
#include <limits>
#include <memory>

#include "keys/x25519.hpp"

namespace mpisec::keys::noise {
namespace {

struct Free {
    void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};
using Context = std::unique_ptr<EVP_CIPHER_CTX, Free>;

/// Section 12.3: 32 bits of zeros, then the big-endian nonce.
std::array<std::uint8_t, 12> gcm_nonce(std::uint64_t n) {
    std::array<std::uint8_t, 12> nonce{};
    for (int i = 0; i < 8; ++i) nonce[11 - i] = static_cast<std::uint8_t>(n >> (8 * i));
    return nonce;
}

/// `out` is null for associated data.
bool update(EVP_CIPHER_CTX* context, std::uint8_t* out, Bytes data) {
    int written = 0;
    return data.empty() ||
           EVP_CipherUpdate(context, out, &written, data.data(), static_cast<int>(data.size())) == 1;
}

/// A context set up for one message, with the associated data taken in; null when OpenSSL refuses.
Context begin(const Secret& key, std::uint64_t n, Bytes ad, int encrypting) {
    initialize_openssl();
    Context context(EVP_CIPHER_CTX_new());
    if (!context || EVP_CipherInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, key.data(),
                                      gcm_nonce(n).data(), encrypting) != 1) {
        return nullptr;
    }
    return update(context.get(), nullptr, ad) ? std::move(context) : nullptr;
}

}  // namespace

Result<void> CipherState::encrypt(Bytes ad, Bytes plaintext, std::uint8_t* out) {
    if (!key_) {
        if (!plaintext.empty()) std::memcpy(out, plaintext.data(), plaintext.size());
        return {};
    }
    if (plaintext.size() > max_message_bytes - tag_bytes)
        return fail("A Noise message would be longer than 65535 bytes.");
    // 2^64 - 1 is reserved (section 5.1).
    if (nonce_ == std::numeric_limits<std::uint64_t>::max())
        return fail("A Noise cipher has used all its nonces.");

    Context context = begin(*key_, nonce_, ad, 1);
    int written = 0;
    if (!context || !update(context.get(), out, plaintext) ||
        EVP_CipherFinal_ex(context.get(), out + plaintext.size(), &written) != 1 ||
        EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_GET_TAG, tag_bytes, out + plaintext.size()) != 1) {
        return fail("OpenSSL could not encrypt a Noise message.");
    }
    ++nonce_;
    return {};
}

Result<void> CipherState::decrypt(Bytes ad, Bytes ciphertext, std::uint8_t* out) {
    if (!key_) {
        if (!ciphertext.empty()) std::memcpy(out, ciphertext.data(), ciphertext.size());
        return {};
    }
    if (ciphertext.size() < tag_bytes || ciphertext.size() > max_message_bytes) {
        return fail("A Noise message of an impossible length arrived.");
    }
    if (nonce_ == std::numeric_limits<std::uint64_t>::max())
        return fail("A Noise cipher has used all its nonces.");

    const std::size_t n = ciphertext.size() - tag_bytes;
    std::uint8_t tag[tag_bytes];
    std::memcpy(tag, ciphertext.data() + n, tag_bytes);
    Context context = begin(*key_, nonce_, ad, 0);
    int written = 0;
    if (!context || !update(context.get(), out, ciphertext.first(n)) ||
        EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_SET_TAG, tag_bytes, tag) != 1 ||
        EVP_CipherFinal_ex(context.get(), out + n, &written) != 1) {
        if (n > 0) wipe(out, n);  // nothing unauthenticated is released (S2)
        return fail(
            "A Noise message does not decrypt: the keys or the transcripts differ, or it was changed on the "
            "way.");
    }
    ++nonce_;
    return {};
}

}  // namespace mpisec::keys::noise
