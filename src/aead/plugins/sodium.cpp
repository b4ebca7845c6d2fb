// libsodium: AES-256-GCM where the CPU has AES, ChaCha20-Poly1305 (RFC 8439) everywhere.
#include <sodium.h>

#include "aead/plugins/plugin.hpp"

namespace {

using namespace mpisec::aead;

bool initialized() {
    static const bool done = sodium_init() >= 0;
    return done;
}

int has(int cipher) {
    if (!initialized()) return 0;
    if (static_cast<Cipher>(cipher) == Cipher::aes_256_gcm) return crypto_aead_aes256gcm_is_available();
    return static_cast<Cipher>(cipher) == Cipher::chacha20_poly1305;
}

const char* version() {
    return sodium_version_string();
}

class State {
  public:
    State(Cipher cipher, const std::uint8_t* key) : ready(has(static_cast<int>(cipher))), cipher_(cipher) {
        if (!ready) return;
        if (cipher == Cipher::aes_256_gcm) ready = crypto_aead_aes256gcm_beforenm(&aes_, key) == 0;
        if (cipher == Cipher::chacha20_poly1305) std::memcpy(chacha_, key, sizeof chacha_);
    }
    ~State() {
        sodium_memzero(&aes_, sizeof aes_);
        sodium_memzero(chacha_, sizeof chacha_);
    }

    bool seal(std::uint8_t* to, const std::uint8_t* from, std::size_t n, const std::uint8_t* nonce,
              const std::uint8_t* ad, std::size_t ad_n) {
        if (cipher_ == Cipher::aes_256_gcm)
            return crypto_aead_aes256gcm_encrypt_afternm(to, nullptr, from, n, ad, ad_n, nullptr, nonce,
                                                         &aes_) == 0;
        return cipher_ == Cipher::chacha20_poly1305 &&
               crypto_aead_chacha20poly1305_ietf_encrypt(to, nullptr, from, n, ad, ad_n, nullptr, nonce,
                                                         chacha_) == 0;
    }

    bool open(std::uint8_t* to, const std::uint8_t* from, std::size_t n, const std::uint8_t* nonce,
              const std::uint8_t* ad, std::size_t ad_n) {
        if (cipher_ == Cipher::aes_256_gcm)
            return crypto_aead_aes256gcm_decrypt_afternm(to, nullptr, nullptr, from, n + tag_bytes, ad, ad_n,
                                                         nonce, &aes_) == 0;
        return cipher_ == Cipher::chacha20_poly1305 &&
               crypto_aead_chacha20poly1305_ietf_decrypt(to, nullptr, nullptr, from, n + tag_bytes, ad, ad_n,
                                                         nonce, chacha_) == 0;
    }

    bool ready;

  private:
    Cipher cipher_;
    crypto_aead_aes256gcm_state aes_;
    std::uint8_t chacha_[crypto_aead_chacha20poly1305_ietf_KEYBYTES];
};

}  // namespace

MPISEC_AEAD_PLUGIN("sodium", version, has, State)
