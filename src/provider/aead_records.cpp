#include "provider/aead_records.hpp"

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include <cstring>

namespace mpisec::provider {
namespace {

/// The inner context for records of TLS 1.2, made when the first comes.
bool ready_for_records(AeadMessage& aead) {
    if (aead.tls) return true;
    if (!aead.keys.is_set() || aead.state == AeadMessage::Vector::missing) return false;
    aead.tls = EVP_CIPHER_CTX_new();
    return aead.tls && EVP_CipherInit_ex2(aead.tls, openssl_cipher(aead.traits->mode, aead.traits->key_n),
                                          aead.keys.bytes(), aead.iv, aead.encrypt ? 1 : 0, nullptr) == 1;
}

}  // namespace

int gcm_record(AeadMessage& aead, std::uint8_t* out, std::size_t* out_n, const std::uint8_t* in,
               std::size_t n) {
    *out_n = 0;
    bool good = aead.keys.is_set() && out == in && n >= tls_explicit_bytes + tag_bytes &&
                (!aead.encrypt || ++aead.records != 0);
    good = good && (aead.encrypt ? aead.begin_under_next_vector(out, tls_explicit_bytes)
                                 : aead.begin_under_peers_vector(out, tls_explicit_bytes));
    if (good) {
        const std::size_t text_n = n - tls_explicit_bytes - tag_bytes;
        std::uint8_t* at = out + tls_explicit_bytes;
        good = aead.associate(aead.tls_ad, aead.tls_ad_n) && aead.text(at, at, text_n) &&
               aead.finish(at + text_n, tag_bytes);
        if (good) *out_n = aead.encrypt ? n : text_n;
        if (!good && !aead.encrypt) OPENSSL_cleanse(at, text_n);
    }
    aead.state = AeadMessage::Vector::finished;
    aead.tls_ad_n = AeadMessage::none;
    return good ? 1 : 0;
}

int chacha_record(AeadMessage& aead, std::uint8_t* out, std::size_t* out_n, const std::uint8_t* in,
                  std::size_t n) {
    aead.tls_ad_n = AeadMessage::none;
    const int done = n < (1 << 20) ? EVP_Cipher(aead.tls, out, in, static_cast<unsigned>(n)) : -1;
    *out_n = done > 0 ? static_cast<std::size_t>(done) : 0;
    return done > 0 ? 1 : 0;
}

bool take_tls_ad(AeadMessage& aead, const OSSL_PARAM& given) {
    if (aead.chacha()) {
        const OSSL_PARAM inner[2] = {given, OSSL_PARAM_END};
        if (!ready_for_records(aead) || EVP_CIPHER_CTX_set_params(aead.tls, inner) != 1) return false;
        aead.tls_ad_n = tls_ad_bytes;
        return true;
    }
    if (given.data_type != OSSL_PARAM_OCTET_STRING || given.data_size != tls_ad_bytes) return false;
    std::memcpy(aead.tls_ad, given.data, tls_ad_bytes);
    aead.tls_ad_n = tls_ad_bytes;
    std::uint8_t* length = aead.tls_ad + tls_ad_bytes - 2;
    const std::size_t around = tls_explicit_bytes + (aead.encrypt ? 0 : tag_bytes);
    std::size_t n = std::size_t{length[0]} << 8 | length[1];
    if (n < around) return false;
    n -= around;
    length[0] = static_cast<std::uint8_t>(n >> 8), length[1] = static_cast<std::uint8_t>(n);
    return true;
}

bool take_fixed(AeadMessage& aead, const OSSL_PARAM& given) {
    if (aead.chacha()) {
        if (given.data_type != OSSL_PARAM_OCTET_STRING || given.data_size != chacha_iv_bytes) return false;
        std::memcpy(aead.iv, given.data, chacha_iv_bytes);
        aead.state = AeadMessage::Vector::given;
        return true;
    }
    if (given.data_type != OSSL_PARAM_OCTET_STRING) return false;
    const std::size_t n = given.data_size;
    if (n == AeadMessage::none) {  // the whole vector
        std::memcpy(aead.iv, given.data, aead.iv_n);
    } else {
        if (n < tls_fixed_bytes || n > aead.iv_n || aead.iv_n - n < tls_explicit_bytes) return false;
        std::memcpy(aead.iv, given.data, n);
        if (aead.encrypt && RAND_bytes(aead.iv + n, static_cast<int>(aead.iv_n - n)) != 1) return false;
    }
    aead.set_counter();
    return true;
}

}  // namespace mpisec::provider
