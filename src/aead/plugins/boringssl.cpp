// BoringSSL (static, hidden): AES-GCM with VAES on AVX2 and AVX-512, constant time without AES instructions
// too.
#include <openssl/aead.h>

#include "aead/plugins/plugin.hpp"

namespace {

using namespace mpisec::aead;

const EVP_AEAD* algorithm(Cipher cipher) {
    switch (cipher) {
        case Cipher::aes_128_gcm:
            return EVP_aead_aes_128_gcm();
        case Cipher::aes_256_gcm:
            return EVP_aead_aes_256_gcm();
        case Cipher::chacha20_poly1305:
            return EVP_aead_chacha20_poly1305();
        default:
            return nullptr;
    }
}

int has(int cipher) {
    return algorithm(static_cast<Cipher>(cipher)) != nullptr;
}
const char* version() {
    return MPISEC_BORINGSSL_VERSION;
}

class State {
  public:
    State(Cipher cipher, const std::uint8_t* key) {
        EVP_AEAD_CTX_zero(&context_);
        const EVP_AEAD* aead = algorithm(cipher);
        ready = aead &&
                EVP_AEAD_CTX_init(&context_, aead, key, EVP_AEAD_key_length(aead), tag_bytes, nullptr) == 1;
    }
    ~State() {
        EVP_AEAD_CTX_cleanup(&context_);
        explicit_bzero(&context_, sizeof context_);  // holds the key itself
    }

    bool seal(std::uint8_t* to, const std::uint8_t* from, std::size_t n, const std::uint8_t* nonce,
              const std::uint8_t* ad, std::size_t ad_n) {
        std::size_t tag_n = 0;
        return EVP_AEAD_CTX_seal_scatter(&context_, to, to + n, &tag_n, tag_bytes, nonce, nonce_bytes, from,
                                         n, nullptr, 0, ad, ad_n) == 1;
    }

    bool open(std::uint8_t* to, const std::uint8_t* from, std::size_t n, const std::uint8_t* nonce,
              const std::uint8_t* ad, std::size_t ad_n) {
        return EVP_AEAD_CTX_open_gather(&context_, to, nonce, nonce_bytes, from, n, from + n, tag_bytes, ad,
                                        ad_n) == 1;
    }

    bool ready;

  private:
    EVP_AEAD_CTX context_;
};

}  // namespace

MPISEC_AEAD_PLUGIN("boringssl", version, has, State)
