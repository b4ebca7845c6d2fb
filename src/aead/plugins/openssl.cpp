// OpenSSL 3 (shared, so that the system updates it; its FIPS provider is used where the system's configuration says so).
#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>

#include "aead/plugins/plugin.hpp"

namespace {

using namespace mpisec::aead;

constexpr std::size_t piece = std::size_t{1} << 30;  // EVP counts in int

const EVP_CIPHER* fetched(Cipher cipher) {
    // Exit handlers of the program may still call MPI after those that OpenSSL would register.
    static const int initialized = OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);
    if (initialized != 1) return nullptr;
    static EVP_CIPHER* const aes_128 = EVP_CIPHER_fetch(nullptr, "AES-128-GCM", nullptr);
    static EVP_CIPHER* const aes_256 = EVP_CIPHER_fetch(nullptr, "AES-256-GCM", nullptr);
    static EVP_CIPHER* const chacha = EVP_CIPHER_fetch(nullptr, "ChaCha20-Poly1305", nullptr);
    switch (cipher) {
        case Cipher::aes_128_gcm:
            return aes_128;
        case Cipher::aes_256_gcm:
            return aes_256;
        case Cipher::chacha20_poly1305:
            return chacha;
        default:
            return nullptr;
    }
}

int has(int cipher) {
    return fetched(static_cast<Cipher>(cipher)) != nullptr;
}
const char* version() {
    return OpenSSL_version(OPENSSL_VERSION_STRING);
}

bool update(EVP_CIPHER_CTX* context, std::uint8_t* to, const std::uint8_t* from, std::size_t n) {
    for (std::size_t done = 0; done < n; done += piece) {
        int written = 0;
        int now = static_cast<int>(std::min(piece, n - done));
        if (EVP_CipherUpdate(context, to ? to + done : nullptr, &written, from + done, now) != 1)
            return false;
    }
    return true;
}

/// A context per direction, made when first needed: the key schedule is kept from call to call, and only the nonce is set.
class State {
  public:
    State(Cipher cipher, const std::uint8_t* key)
        : ready(has(static_cast<int>(cipher))), cipher_(fetched(cipher)) {
        if (ready) std::memcpy(key_, key, info_key_bytes());
    }
    ~State() {
        for (EVP_CIPHER_CTX* context : contexts_) EVP_CIPHER_CTX_free(context);  // wipes
        explicit_bzero(key_, sizeof key_);
    }

    bool seal(std::uint8_t* to, const std::uint8_t* from, std::size_t n, const std::uint8_t* nonce,
              const std::uint8_t* ad, std::size_t ad_n) {
        EVP_CIPHER_CTX* context = start(1, nonce);
        int rest = 0;
        return context && update(context, nullptr, ad, ad_n) && update(context, to, from, n) &&
               EVP_CipherFinal_ex(context, to + n, &rest) == 1 &&
               EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, tag_bytes, to + n) == 1;
    }

    bool open(std::uint8_t* to, const std::uint8_t* from, std::size_t n, const std::uint8_t* nonce,
              const std::uint8_t* ad, std::size_t ad_n) {
        EVP_CIPHER_CTX* context = start(0, nonce);
        int rest = 0;
        auto* tag = const_cast<std::uint8_t*>(from + n);
        return context && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, tag_bytes, tag) == 1 &&
               update(context, nullptr, ad, ad_n) && update(context, to, from, n) &&
               EVP_CipherFinal_ex(context, to, &rest) == 1;
    }

    bool ready;

  private:
    std::size_t info_key_bytes() const {
        return static_cast<std::size_t>(EVP_CIPHER_get_key_length(cipher_));
    }

    EVP_CIPHER_CTX* start(int encrypt, const std::uint8_t* nonce) {
        EVP_CIPHER_CTX*& context = contexts_[encrypt];
        if (context)
            return EVP_CipherInit_ex2(context, nullptr, nullptr, nonce, encrypt, nullptr) == 1 ? context
                                                                                               : nullptr;
        context = EVP_CIPHER_CTX_new();
        if (context && EVP_CipherInit_ex2(context, cipher_, key_, nonce, encrypt, nullptr) == 1)
            return context;
        EVP_CIPHER_CTX_free(context);
        return context = nullptr;
    }

    const EVP_CIPHER* cipher_;
    EVP_CIPHER_CTX* contexts_[2] = {nullptr, nullptr};
    std::uint8_t key_[max_key_bytes] = {};
};

}  // namespace

MPISEC_AEAD_PLUGIN("openssl", version, has, State)
