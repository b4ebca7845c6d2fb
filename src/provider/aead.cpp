#include "provider/aead.hpp"

#include <openssl/crypto.h>

#include <cstring>
#include <new>

#include "base/locked_slab.hpp"
#include "provider/aead_records.hpp"

namespace mpisec::provider {
namespace {

LockedSlab& aead_slots() {
    static LockedSlab* const slab = [] {
        auto* made = new LockedSlab(sizeof(AeadMessage), LockedSlab::Fork::keep);
        made->reserve(256 * 1024);
        return made;
    }();
    return *slab;
}

int take_tag(AeadMessage& aead, const OSSL_PARAM& given) {
    if (aead.chacha() && given.data_type == OSSL_PARAM_OCTET_STRING && !given.data) {  // its length alone
        if (given.data_size == 0 || given.data_size > tag_bytes)
            return raise(aead.instance, PROV_R_INVALID_TAG_LENGTH);
        aead.tag_n = given.data_size;
        return 1;
    }
    void* to = aead.tag;
    std::size_t n = 0;
    if (OSSL_PARAM_get_octet_string(&given, &to, sizeof aead.tag, &n) != 1)
        return raise(aead.instance, PROV_R_FAILED_TO_GET_PARAMETER);
    if (n == 0 || aead.encrypt) return raise(aead.instance, PROV_R_INVALID_TAG);
    aead.tag_n = n;
    return 1;
}

int take_vector_length(AeadMessage& aead, const OSSL_PARAM& given) {
    std::size_t n = 0;
    if (OSSL_PARAM_get_size_t(&given, &n) != 1) return raise(aead.instance, PROV_R_FAILED_TO_GET_PARAMETER);
    if (aead.chacha() ? n != chacha_iv_bytes : n == 0 || n > sizeof aead.iv)
        return raise(aead.instance, PROV_R_INVALID_IV_LENGTH);
    if (n != aead.iv_n) {
        if (aead.state != AeadMessage::Vector::missing) aead.state = AeadMessage::Vector::finished;
        aead.set_vector_length(n);
    }
    return 1;
}

bool give_vector(AeadMessage& aead, OSSL_PARAM parameters[], const char* name) {
    OSSL_PARAM* wanted = OSSL_PARAM_locate(parameters, name);
    if (!wanted) return true;
    if (aead.state == AeadMessage::Vector::missing) return false;
    if (wanted->data_type != OSSL_PARAM_OCTET_PTR && wanted->data_size < aead.iv_n)
        return raise(aead.instance, PROV_R_INVALID_IV_LENGTH) != 0;
    return put(parameters, name, aead.iv, aead.iv_n);
}

}  // namespace

void reserve_aead() {
    aead_slots();
}

void* new_aead(const Instance* instance, const Traits* traits) {
    void* slot = aead_slots().take();
    return slot ? new (slot) AeadMessage(instance, traits) : nullptr;
}

void free_aead(void* context) {
    if (!context) return;
    static_cast<AeadMessage*>(context)->~AeadMessage();
    aead_slots().give_back(context);  // wipes
}

void* copy_aead(void* context) {
    const auto& from = *static_cast<const AeadMessage*>(context);
    void* slot = aead_slots().take();
    if (!slot) return nullptr;
    auto* made = new (slot) AeadMessage(from);
    made->tls = from.tls ? EVP_CIPHER_CTX_new() : nullptr;
    const bool with_tls = !from.tls || (made->tls && EVP_CIPHER_CTX_copy(made->tls, from.tls) == 1);
    if (with_tls && (from.library == AeadMessage::none || made->keys.copy_state(from.keys, from.library)))
        return made;
    free_aead(made);
    return nullptr;
}

int init_aead(void* opaque, bool encrypt, const std::uint8_t* key, std::size_t key_n, const std::uint8_t* iv,
              std::size_t iv_n, const OSSL_PARAM parameters[]) {
    auto& aead = *static_cast<AeadMessage*>(opaque);
    // A message cannot go on in the other direction.
    if (aead.encrypt != encrypt && aead.state == AeadMessage::Vector::used)
        aead.state = AeadMessage::Vector::finished;
    aead.encrypt = encrypt;
    EVP_CIPHER_CTX_free(aead.tls);
    aead.tls = nullptr;
    if (iv) {
        const bool fits = aead.chacha() ? iv_n == chacha_iv_bytes : iv_n > 0 && iv_n <= sizeof aead.iv;
        if (!fits) return raise(aead.instance, PROV_R_INVALID_IV_LENGTH);
        aead.set_vector_length(iv_n);
        std::memcpy(aead.iv, iv, iv_n);
        aead.counted = 0;
        aead.state = AeadMessage::Vector::given;
    }
    if (key) {
        if (key_n != aead.traits->key_n) return raise(aead.instance, PROV_R_INVALID_KEY_LENGTH);
        aead.keys.set(key, key_n);
        aead.records = 0;
        // A message cannot go on under another key, and no vector is used twice.
        if (!iv && aead.state == AeadMessage::Vector::used) aead.state = AeadMessage::Vector::finished;
    }
    return set_aead_parameters(opaque, parameters);
}

int get_aead_parameters(void* opaque, OSSL_PARAM parameters[]) {
    auto& aead = *static_cast<AeadMessage*>(opaque);
    if (!put(parameters, OSSL_CIPHER_PARAM_IVLEN, aead.iv_n) ||
        !put(parameters, OSSL_CIPHER_PARAM_KEYLEN, aead.traits->key_n) ||
        !put(parameters, OSSL_CIPHER_PARAM_AEAD_TAGLEN,
             aead.tag_n == AeadMessage::none ? tag_bytes : aead.tag_n) ||
        !put(parameters, OSSL_CIPHER_PARAM_AEAD_TLS1_AAD_PAD, tag_bytes) ||
        (!aead.chacha() && (!give_vector(aead, parameters, OSSL_CIPHER_PARAM_IV) ||
                            !give_vector(aead, parameters, OSSL_CIPHER_PARAM_UPDATED_IV))))
        return raise(aead.instance, PROV_R_FAILED_TO_SET_PARAMETER);
    if (OSSL_PARAM* tag = OSSL_PARAM_locate(parameters, OSSL_CIPHER_PARAM_AEAD_TAG)) {
        const std::size_t n = tag->data ? tag->data_size : tag_bytes;
        if (n == 0 || n > tag_bytes || !aead.encrypt || (aead.tag_n == AeadMessage::none && !aead.chacha()))
            return raise(aead.instance, PROV_R_INVALID_TAG);
        if (OSSL_PARAM_set_octet_string(tag, aead.tag, n) != 1)
            return raise(aead.instance, PROV_R_FAILED_TO_SET_PARAMETER);
    }
    if (OSSL_PARAM* next = OSSL_PARAM_locate(parameters, OSSL_CIPHER_PARAM_AEAD_TLS1_GET_IV_GEN)) {
        if (!next->data || next->data_type != OSSL_PARAM_OCTET_STRING ||
            !aead.begin_under_next_vector(static_cast<std::uint8_t*>(next->data), next->data_size))
            return 0;
    }
    return 1;
}

int set_aead_parameters(void* opaque, const OSSL_PARAM parameters[]) {
    auto& aead = *static_cast<AeadMessage*>(opaque);
    if (!parameters) return 1;
    const auto find = [parameters](const char* name) { return OSSL_PARAM_locate_const(parameters, name); };
    if (const OSSL_PARAM* tag = find(OSSL_CIPHER_PARAM_AEAD_TAG); tag && !take_tag(aead, *tag)) return 0;
    if (const OSSL_PARAM* n = find(OSSL_CIPHER_PARAM_AEAD_IVLEN); n && !take_vector_length(aead, *n))
        return 0;
    if (const OSSL_PARAM* ad = find(OSSL_CIPHER_PARAM_AEAD_TLS1_AAD); ad && !take_tls_ad(aead, *ad))
        return raise(aead.instance, PROV_R_INVALID_AAD);
    if (const OSSL_PARAM* fixed = find(OSSL_CIPHER_PARAM_AEAD_TLS1_IV_FIXED);
        fixed && !take_fixed(aead, *fixed))
        return raise(aead.instance, PROV_R_FAILED_TO_GET_PARAMETER);
    if (const OSSL_PARAM* peers = find(OSSL_CIPHER_PARAM_AEAD_TLS1_SET_IV_INV))
        if (!peers->data || peers->data_type != OSSL_PARAM_OCTET_STRING ||
            !aead.begin_under_peers_vector(static_cast<const std::uint8_t*>(peers->data), peers->data_size))
            return 0;
    std::size_t key_n = aead.traits->key_n;
    if (!take(parameters, OSSL_CIPHER_PARAM_KEYLEN, key_n) || key_n != aead.traits->key_n)
        return raise(aead.instance, PROV_R_INVALID_KEY_LENGTH);
    return 1;
}

int aead_cipher(void* opaque, unsigned char* out, std::size_t* out_n, std::size_t room,
                const unsigned char* in, std::size_t in_n) {
    auto& aead = *static_cast<AeadMessage*>(opaque);
    if (room < in_n) return raise(aead.instance, PROV_R_OUTPUT_BUFFER_TOO_SMALL);
    if (aead.chacha() && in_n == 0) return *out_n = 0, 1;
    if (aead.chacha() && aead.tls_ad_n != AeadMessage::none) return chacha_record(aead, out, out_n, in, in_n);
    // libssl is told the length of the whole record, as by OpenSSL's own.
    if (aead.tls_ad_n != AeadMessage::none) {
        const int good = gcm_record(aead, out, out_n, in, in_n);
        if (good) *out_n = in_n;
        return good;
    }
    *out_n = 0;
    if (!in) return aead_final(opaque, out, out_n, room);
    if (!aead.ready() || !(out ? aead.text(out, in, in_n) : aead.associate(in, in_n))) return 0;
    *out_n = in_n;
    return 1;
}

int aead_update(void* opaque, unsigned char* out, std::size_t* out_n, std::size_t room,
                const unsigned char* in, std::size_t in_n) {
    auto& aead = *static_cast<AeadMessage*>(opaque);
    *out_n = 0;
    if (in_n == 0) return 1;
    if (aead.tls_ad_n != AeadMessage::none && room >= in_n && !aead.chacha())
        return gcm_record(aead, out, out_n, in, in_n);
    if (aead_cipher(opaque, out, out_n, room, in, in_n)) return 1;
    return raise(aead.instance, PROV_R_CIPHER_OPERATION_FAILED);
}

int aead_final(void* opaque, unsigned char* out, std::size_t* out_n, std::size_t) {
    auto& aead = *static_cast<AeadMessage*>(opaque);
    *out_n = 0;
    if (aead.tls_ad_n != AeadMessage::none)
        return aead.chacha() ? 0 : gcm_record(aead, out, out_n, nullptr, 0);
    if (!aead.ready()) return 0;
    if (!aead.encrypt && aead.tag_n == AeadMessage::none) return raise(aead.instance, PROV_R_TAG_NOT_SET);
    if (!aead.finish(aead.tag, aead.encrypt ? tag_bytes : aead.tag_n)) return 0;
    if (aead.encrypt && (!aead.chacha() || aead.tag_n == AeadMessage::none)) aead.tag_n = tag_bytes;
    aead.state = AeadMessage::Vector::finished;
    return 1;
}

}  // namespace mpisec::provider
