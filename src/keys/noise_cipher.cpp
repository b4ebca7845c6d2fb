#include "keys/noise_cipher.hpp"

#include <sodium.h>

#include <cstring>
#include <limits>

#include "base/bytes.hpp"
#include "keys/x25519.hpp"

namespace mpisec::keys::noise {
namespace {

/// Section 12.2: 32 bits of zeros, then the little-endian nonce.
std::array<std::uint8_t, crypto_aead_chacha20poly1305_ietf_NPUBBYTES> cipher_nonce(std::uint64_t n) {
    std::array<std::uint8_t, crypto_aead_chacha20poly1305_ietf_NPUBBYTES> nonce{};
    store_le(nonce.data() + 4, n);
    return nonce;
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

    initialize_sodium();
    unsigned long long written = 0;
    crypto_aead_chacha20poly1305_ietf_encrypt(out, &written, plaintext.data(), plaintext.size(), ad.data(),
                                              ad.size(), nullptr, cipher_nonce(nonce_).data(), key_->data());
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

    initialize_sodium();
    unsigned long long written = 0;
    if (crypto_aead_chacha20poly1305_ietf_decrypt(out, &written, nullptr, ciphertext.data(),
                                                  ciphertext.size(), ad.data(), ad.size(),
                                                  cipher_nonce(nonce_).data(), key_->data()) != 0) {
        if (ciphertext.size() > tag_bytes)
            wipe(out, ciphertext.size() - tag_bytes);  // nothing unauthenticated is released (S2)
        return fail(
            "A Noise message does not decrypt: the keys or the transcripts differ, or it was changed on the "
            "way.");
    }
    ++nonce_;
    return {};
}

}  // namespace mpisec::keys::noise
