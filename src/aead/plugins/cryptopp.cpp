// Crypto++: the papers' fourth library. Its exceptions end here.
#include <cryptopp/aes.h>
#include <cryptopp/chachapoly.h>
#include <cryptopp/config_ver.h>
#include <cryptopp/gcm.h>

#include <memory>

#include "aead/plugins/hardware_aes.hpp"
#include "aead/plugins/plugin.hpp"
#include "base/text_of_macro.hpp"

namespace {

using namespace mpisec::aead;
using CryptoPP::AuthenticatedSymmetricCipher;

int has(int cipher) {
    switch (static_cast<Cipher>(cipher)) {
        case Cipher::aes_128_gcm:
        case Cipher::aes_256_gcm:
            return plugins::hardware_aes();
        case Cipher::chacha20_poly1305:
            return 1;
        default:
            return 0;
    }
}

const char* version() {
    return MPISEC_TEXT(CRYPTOPP_MAJOR) "." MPISEC_TEXT(CRYPTOPP_MINOR) "." MPISEC_TEXT(CRYPTOPP_REVISION);
}

template <class Gcm, class Chacha>
std::unique_ptr<AuthenticatedSymmetricCipher> make(Cipher cipher) {
    if (cipher == Cipher::chacha20_poly1305) return std::make_unique<Chacha>();
    return std::make_unique<Gcm>();
}

/// An object per direction, made when first needed. Crypto++ wipes its own key schedules.
class State {
  public:
    State(Cipher cipher, const std::uint8_t* key)
        : ready(has(static_cast<int>(cipher))),
          cipher_(cipher),
          key_n_(cipher == Cipher::aes_128_gcm ? 16 : 32) {
        if (ready) std::memcpy(key_, key, key_n_);
    }
    ~State() { explicit_bzero(key_, sizeof key_); }

    bool seal(std::uint8_t* to, const std::uint8_t* from, std::size_t n, const std::uint8_t* nonce,
              const std::uint8_t* ad, std::size_t ad_n) try {
        if (!sealer_) {
            sealer_ = make<CryptoPP::GCM<CryptoPP::AES>::Encryption, CryptoPP::ChaCha20Poly1305::Encryption>(
                cipher_);
            sealer_->SetKeyWithIV(key_, key_n_, nonce, nonce_bytes);
        }
        sealer_->EncryptAndAuthenticate(to, to + n, tag_bytes, nonce, nonce_bytes, ad, ad_n, from, n);
        return true;
    } catch (...) {
        return false;
    }

    bool open(std::uint8_t* to, const std::uint8_t* from, std::size_t n, const std::uint8_t* nonce,
              const std::uint8_t* ad, std::size_t ad_n) try {
        if (!opener_) {
            opener_ = make<CryptoPP::GCM<CryptoPP::AES>::Decryption, CryptoPP::ChaCha20Poly1305::Decryption>(
                cipher_);
            opener_->SetKeyWithIV(key_, key_n_, nonce, nonce_bytes);
        }
        return opener_->DecryptAndVerify(to, from + n, tag_bytes, nonce, nonce_bytes, ad, ad_n, from, n);
    } catch (...) {
        return false;
    }

    bool ready;

  private:
    Cipher cipher_;
    std::size_t key_n_;
    std::uint8_t key_[max_key_bytes] = {};
    std::unique_ptr<AuthenticatedSymmetricCipher> sealer_, opener_;
};

}  // namespace

MPISEC_AEAD_PLUGIN("cryptopp", version, has, State)
