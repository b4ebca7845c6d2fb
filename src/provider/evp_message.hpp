// A message through an EVP_CIPHER_CTX, of OpenSSL or of BoringSSL: whoever includes this has included either's EVP.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace mpisec::provider {

/// `context` stays the owner's.
class EvpMessage {
  public:
    explicit EvpMessage(EVP_CIPHER_CTX* context) : context_(context) {}

    bool start(const std::uint8_t* iv, std::size_t iv_n, const std::uint8_t* ad, std::size_t ad_n) {
        return EVP_CIPHER_CTX_ctrl(context_, EVP_CTRL_AEAD_SET_IVLEN, static_cast<int>(iv_n), nullptr) == 1 &&
               EVP_CipherInit_ex(context_, nullptr, nullptr, nullptr, iv, -1) == 1 && associate(ad, ad_n);
    }
    bool associate(const std::uint8_t* ad, std::size_t n) { return pieces(nullptr, ad, n); }
    bool update(bool, std::uint8_t* to, const std::uint8_t* from, std::size_t n) {
        return pieces(to, from, n);
    }
    /// As mpisec_cipher_plugin::finish.
    bool finish(bool encrypt, std::uint8_t* tag, std::size_t tag_n) {
        std::uint8_t none[16];
        int written = 0;
        if (!encrypt &&
            EVP_CIPHER_CTX_ctrl(context_, EVP_CTRL_AEAD_SET_TAG, static_cast<int>(tag_n), tag) != 1)
            return false;
        return EVP_CipherFinal_ex(context_, none, &written) == 1 &&
               (!encrypt || EVP_CIPHER_CTX_ctrl(context_, EVP_CTRL_AEAD_GET_TAG, 16, tag) == 1);
    }

  private:
    bool pieces(std::uint8_t* to, const std::uint8_t* from, std::size_t n) {
        constexpr std::size_t piece = std::size_t{1} << 30;  // EVP counts in int
        for (std::size_t done = 0; done < n; done += piece) {
            int written = 0;
            const int now = static_cast<int>(std::min(piece, n - done));
            if (EVP_CipherUpdate(context_, to ? to + done : nullptr, &written, from + done, now) != 1)
                return false;
        }
        return true;
    }

    EVP_CIPHER_CTX* context_;
};

}  // namespace mpisec::provider
