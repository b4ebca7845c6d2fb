#include "provider/aead.hpp"

#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <string.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "base/locked_slab.hpp"

namespace mpisec::provider {
namespace {

constexpr std::size_t tag_bytes = 16, max_iv_bytes = 128, kept_ad_bytes = 256;
constexpr std::size_t none = static_cast<std::size_t>(-1);
// TLS 1.2 (RFC 5288): 4 bytes of the vector are the connection's, 8 travel in front of each record.
constexpr std::size_t tls_fixed_bytes = 4, tls_explicit_bytes = 8, tls_ad_bytes = 13;

enum class Vector { missing, given, used, finished };

struct Gcm {
    Gcm(const Instance* of, const Traits* algorithm)
        : instance(of), traits(algorithm), keys(algorithm->mode, algorithm->key_n) {}
    Gcm(const Gcm&) = default;

    const Instance* instance;
    const Traits* traits;
    bool encrypt = false;
    Vector state = Vector::missing;
    bool counts = false;  ///< the vector's last part is a counter, begun by TLS
    std::size_t iv_n = 12, tag_n = none, tls_ad_n = none;
    std::uint64_t records = 0;
    std::uint8_t iv[max_iv_bytes] = {}, tag[tag_bytes] = {}, tls_ad[tls_ad_bytes] = {};
    std::uint8_t message_iv[max_iv_bytes] = {};  ///< of the message under way, when `iv` counts on
    /// The library is chosen by the first piece of the message, until which associated data waits here.
    std::size_t library = none;
    bool text_begun = false;
    std::size_t ad_n = 0;
    std::uint8_t ad[kept_ad_bytes] = {};
    Keyring keys;
};

LockedSlab& gcm_slots() {
    static LockedSlab* const slab = [] {
        auto* made = new LockedSlab(sizeof(Gcm), LockedSlab::Fork::keep);
        made->reserve(256 * 1024);
        return made;
    }();
    return *slab;
}

mpisec_cipher_plugin const& table(const Gcm& gcm) {
    return *libraries()[gcm.library];
}

/// The state of the message in the library that serves it.
void* message(Gcm& gcm) {
    return gcm.keys.get(gcm.library, gcm.encrypt);
}

bool begin(Gcm& gcm, std::size_t library) {
    gcm.library = library;
    void* key = message(gcm);
    if (key && table(gcm).start(key, gcm.message_iv, gcm.iv_n, gcm.ad, gcm.ad_n) == 0) return true;
    gcm.library = none;
    return false;
}

/// More than can wait here is a matter for a library that takes it by pieces.
std::size_t library_for_much_data() {
    std::size_t i = 0;
    while (!libraries()[i]->associate) ++i;
    return i;
}

bool associate(Gcm& gcm, const std::uint8_t* ad, std::size_t n) {
    if (gcm.text_begun) return false;
    if (gcm.library == none) {
        if (gcm.ad_n + n <= kept_ad_bytes) {
            std::memcpy(gcm.ad + gcm.ad_n, ad, n);
            gcm.ad_n += n;
            return true;
        }
        if (!begin(gcm, library_for_much_data())) return false;
    }
    return table(gcm).associate(message(gcm), ad, n) == 0;
}

bool text(Gcm& gcm, std::uint8_t* to, const std::uint8_t* from, std::size_t n) {
    if (gcm.library == none && !begin(gcm, gcm.keys.library_for(gcm.encrypt, n))) return false;
    gcm.text_begun = true;
    return table(gcm).update(message(gcm), gcm.encrypt ? 1 : 0, to, from, n) == 0;
}

bool finish(Gcm& gcm, std::uint8_t* tag, std::size_t tag_n) {
    if (gcm.library == none && !begin(gcm, gcm.keys.library_for(gcm.encrypt, 0))) return false;
    return table(gcm).finish(message(gcm), gcm.encrypt ? 1 : 0, tag, tag_n) == 0;
}

void new_message(Gcm& gcm) {
    gcm.library = none;
    gcm.text_begun = false;
    gcm.ad_n = 0;
    std::memcpy(gcm.message_iv, gcm.iv, gcm.iv_n);
    gcm.state = Vector::used;
}

/// SP 800-38D, 8.2.2: who gives no vector for encryption gets a random one.
bool random_vector(Gcm& gcm) {
    if (!gcm.encrypt || gcm.iv_n < 12 || RAND_bytes(gcm.iv, static_cast<int>(gcm.iv_n)) != 1) return false;
    gcm.state = Vector::given;
    return true;
}

bool ready(Gcm& gcm) {
    if (!gcm.keys.is_set() || gcm.state == Vector::finished) return false;
    if (gcm.state == Vector::missing && !random_vector(gcm)) return false;
    if (gcm.state == Vector::given) new_message(gcm);
    return true;
}

void count(Gcm& gcm) {
    for (std::size_t i = gcm.iv_n; i-- > gcm.iv_n - tls_explicit_bytes;)
        if (++gcm.iv[i] != 0) return;
}

/// The vector for the next message, whose last n bytes go to `out`; then the counter is increased.
bool next_vector(Gcm& gcm, std::uint8_t* out, std::size_t n) {
    if (!gcm.counts || !gcm.keys.is_set()) return false;
    new_message(gcm);
    if (n == 0 || n > gcm.iv_n) n = gcm.iv_n;
    std::memcpy(out, gcm.iv + gcm.iv_n - n, n);
    count(gcm);
    return true;
}

bool peers_vector(Gcm& gcm, const std::uint8_t* in, std::size_t n) {
    if (!gcm.counts || !gcm.keys.is_set() || gcm.encrypt || n > gcm.iv_n) return false;
    std::memcpy(gcm.iv + gcm.iv_n - n, in, n);
    new_message(gcm);
    return true;
}

/// In place: 8 bytes of vector, the text, 16 bytes of tag.
int record(Gcm& gcm, std::uint8_t* out, std::size_t* out_n, const std::uint8_t* in, std::size_t n) {
    *out_n = 0;
    bool good = gcm.keys.is_set() && out == in && n >= tls_explicit_bytes + tag_bytes &&
                (!gcm.encrypt || ++gcm.records != 0);
    good = good && (gcm.encrypt ? next_vector(gcm, out, tls_explicit_bytes)
                                : peers_vector(gcm, out, tls_explicit_bytes));
    if (good) {
        const std::size_t text_n = n - tls_explicit_bytes - tag_bytes;
        std::uint8_t* at = out + tls_explicit_bytes;
        good = associate(gcm, gcm.tls_ad, gcm.tls_ad_n) && text(gcm, at, at, text_n) &&
               finish(gcm, at + text_n, tag_bytes);
        if (good) *out_n = gcm.encrypt ? n : text_n;
        if (!good && !gcm.encrypt) OPENSSL_cleanse(at, text_n);
    }
    gcm.state = Vector::finished;
    gcm.tls_ad_n = none;
    return good ? 1 : 0;
}

bool take_tls_ad(Gcm& gcm, const OSSL_PARAM& given) {
    if (given.data_type != OSSL_PARAM_OCTET_STRING || given.data_size != tls_ad_bytes) return false;
    std::memcpy(gcm.tls_ad, given.data, tls_ad_bytes);
    gcm.tls_ad_n = tls_ad_bytes;
    std::uint8_t* length = gcm.tls_ad + tls_ad_bytes - 2;
    const std::size_t around = tls_explicit_bytes + (gcm.encrypt ? 0 : tag_bytes);
    std::size_t n = std::size_t{length[0]} << 8 | length[1];
    if (n < around) return false;
    n -= around;
    length[0] = static_cast<std::uint8_t>(n >> 8), length[1] = static_cast<std::uint8_t>(n);
    return true;
}

bool take_fixed(Gcm& gcm, const OSSL_PARAM& given) {
    if (given.data_type != OSSL_PARAM_OCTET_STRING) return false;
    const std::size_t n = given.data_size;
    if (n == none) {  // the whole vector
        std::memcpy(gcm.iv, given.data, gcm.iv_n);
    } else {
        if (n < tls_fixed_bytes || n > gcm.iv_n || gcm.iv_n - n < tls_explicit_bytes) return false;
        std::memcpy(gcm.iv, given.data, n);
        if (gcm.encrypt && RAND_bytes(gcm.iv + n, static_cast<int>(gcm.iv_n - n)) != 1) return false;
    }
    gcm.counts = true;
    gcm.state = Vector::given;
    return true;
}

int take_tag(Gcm& gcm, const OSSL_PARAM& given) {
    void* to = gcm.tag;
    std::size_t n = 0;
    if (OSSL_PARAM_get_octet_string(&given, &to, sizeof gcm.tag, &n) != 1)
        return raise(gcm.instance, PROV_R_FAILED_TO_GET_PARAMETER);
    if (n == 0 || gcm.encrypt) return raise(gcm.instance, PROV_R_INVALID_TAG);
    gcm.tag_n = n;
    return 1;
}

int take_vector_length(Gcm& gcm, const OSSL_PARAM& given) {
    std::size_t n = 0;
    if (OSSL_PARAM_get_size_t(&given, &n) != 1) return raise(gcm.instance, PROV_R_FAILED_TO_GET_PARAMETER);
    if (n == 0 || n > sizeof gcm.iv) return raise(gcm.instance, PROV_R_INVALID_IV_LENGTH);
    if (n != gcm.iv_n) {
        if (gcm.state != Vector::missing) gcm.state = Vector::finished;
        gcm.iv_n = n;
    }
    return 1;
}

bool give_vector(Gcm& gcm, OSSL_PARAM parameters[], const char* name) {
    OSSL_PARAM* wanted = OSSL_PARAM_locate(parameters, name);
    if (!wanted) return true;
    if (gcm.state == Vector::missing && (gcm.tls_ad_n != none || !random_vector(gcm))) return false;
    if (wanted->data_type != OSSL_PARAM_OCTET_PTR && wanted->data_size < gcm.iv_n)
        return raise(gcm.instance, PROV_R_INVALID_IV_LENGTH) != 0;
    return put(parameters, name, gcm.iv, gcm.iv_n);
}

}  // namespace

void reserve_gcm() {
    gcm_slots();
}

void* new_gcm(const Instance* instance, const Traits* traits) {
    void* slot = gcm_slots().take();
    return slot ? new (slot) Gcm(instance, traits) : nullptr;
}

void free_gcm(void* context) {
    if (!context) return;
    static_cast<Gcm*>(context)->~Gcm();
    gcm_slots().give_back(context);  // wipes
}

void* copy_gcm(void* context) {
    const auto& from = *static_cast<const Gcm*>(context);
    void* slot = gcm_slots().take();
    if (!slot) return nullptr;
    auto* made = new (slot) Gcm(from);
    if (from.library == none || made->keys.copy_state(from.keys, from.library)) return made;
    free_gcm(made);
    return nullptr;
}

int init_gcm(void* opaque, bool encrypt, const std::uint8_t* key, std::size_t key_n, const std::uint8_t* iv,
             std::size_t iv_n, const OSSL_PARAM parameters[]) {
    auto& gcm = *static_cast<Gcm*>(opaque);
    gcm.encrypt = encrypt;
    if (iv) {
        if (iv_n == 0 || iv_n > sizeof gcm.iv) return raise(gcm.instance, PROV_R_INVALID_IV_LENGTH);
        gcm.iv_n = iv_n;
        std::memcpy(gcm.iv, iv, iv_n);
        gcm.state = Vector::given;
    }
    if (key) {
        if (key_n != gcm.traits->key_n) return raise(gcm.instance, PROV_R_INVALID_KEY_LENGTH);
        gcm.keys.set(key, key_n);
        gcm.records = 0;
        // A message cannot go on under another key, and no vector is used twice.
        if (!iv && gcm.state == Vector::used) gcm.state = Vector::finished;
    }
    return set_gcm_parameters(opaque, parameters);
}

int get_gcm_parameters(void* opaque, OSSL_PARAM parameters[]) {
    auto& gcm = *static_cast<Gcm*>(opaque);
    if (!put(parameters, OSSL_CIPHER_PARAM_IVLEN, gcm.iv_n) ||
        !put(parameters, OSSL_CIPHER_PARAM_KEYLEN, gcm.traits->key_n) ||
        !put(parameters, OSSL_CIPHER_PARAM_AEAD_TAGLEN, gcm.tag_n == none ? tag_bytes : gcm.tag_n) ||
        !put(parameters, OSSL_CIPHER_PARAM_AEAD_TLS1_AAD_PAD, tag_bytes) ||
        !give_vector(gcm, parameters, OSSL_CIPHER_PARAM_IV) ||
        !give_vector(gcm, parameters, OSSL_CIPHER_PARAM_UPDATED_IV))
        return raise(gcm.instance, PROV_R_FAILED_TO_SET_PARAMETER);
    if (OSSL_PARAM* tag = OSSL_PARAM_locate(parameters, OSSL_CIPHER_PARAM_AEAD_TAG)) {
        const std::size_t n = tag->data ? tag->data_size : tag_bytes;
        if (n == 0 || n > tag_bytes || !gcm.encrypt || gcm.tag_n == none)
            return raise(gcm.instance, PROV_R_INVALID_TAG);
        if (OSSL_PARAM_set_octet_string(tag, gcm.tag, n) != 1)
            return raise(gcm.instance, PROV_R_FAILED_TO_SET_PARAMETER);
    }
    if (OSSL_PARAM* next = OSSL_PARAM_locate(parameters, OSSL_CIPHER_PARAM_AEAD_TLS1_GET_IV_GEN)) {
        if (!next->data || next->data_type != OSSL_PARAM_OCTET_STRING ||
            !next_vector(gcm, static_cast<std::uint8_t*>(next->data), next->data_size))
            return 0;
    }
    return 1;
}

int set_gcm_parameters(void* opaque, const OSSL_PARAM parameters[]) {
    auto& gcm = *static_cast<Gcm*>(opaque);
    if (!parameters) return 1;
    const auto find = [parameters](const char* name) { return OSSL_PARAM_locate_const(parameters, name); };
    if (const OSSL_PARAM* tag = find(OSSL_CIPHER_PARAM_AEAD_TAG); tag && !take_tag(gcm, *tag)) return 0;
    if (const OSSL_PARAM* n = find(OSSL_CIPHER_PARAM_AEAD_IVLEN); n && !take_vector_length(gcm, *n)) return 0;
    if (const OSSL_PARAM* ad = find(OSSL_CIPHER_PARAM_AEAD_TLS1_AAD); ad && !take_tls_ad(gcm, *ad))
        return raise(gcm.instance, PROV_R_INVALID_AAD);
    if (const OSSL_PARAM* fixed = find(OSSL_CIPHER_PARAM_AEAD_TLS1_IV_FIXED);
        fixed && !take_fixed(gcm, *fixed))
        return raise(gcm.instance, PROV_R_FAILED_TO_GET_PARAMETER);
    if (const OSSL_PARAM* peers = find(OSSL_CIPHER_PARAM_AEAD_TLS1_SET_IV_INV))
        if (!peers->data || peers->data_type != OSSL_PARAM_OCTET_STRING ||
            !peers_vector(gcm, static_cast<const std::uint8_t*>(peers->data), peers->data_size))
            return 0;
    std::size_t key_n = gcm.traits->key_n;
    if (!take(parameters, OSSL_CIPHER_PARAM_KEYLEN, key_n) || key_n != gcm.traits->key_n)
        return raise(gcm.instance, PROV_R_INVALID_KEY_LENGTH);
    return 1;
}

int gcm_cipher(void* opaque, unsigned char* out, std::size_t* out_n, std::size_t room,
               const unsigned char* in, std::size_t in_n) {
    auto& gcm = *static_cast<Gcm*>(opaque);
    if (room < in_n) return raise(gcm.instance, PROV_R_OUTPUT_BUFFER_TOO_SMALL);
    if (gcm.tls_ad_n != none) {  // libssl is told the length of the whole record, as by OpenSSL's own
        const int good = record(gcm, out, out_n, in, in_n);
        if (good) *out_n = in_n;
        return good;
    }
    *out_n = 0;
    if (!in) return gcm_final(opaque, out, out_n, room);
    if (!ready(gcm) || !(out ? text(gcm, out, in, in_n) : associate(gcm, in, in_n))) return 0;
    *out_n = in_n;
    return 1;
}

int gcm_update(void* opaque, unsigned char* out, std::size_t* out_n, std::size_t room,
               const unsigned char* in, std::size_t in_n) {
    auto& gcm = *static_cast<Gcm*>(opaque);
    *out_n = 0;
    if (in_n == 0) return 1;
    if (gcm.tls_ad_n != none && room >= in_n) return record(gcm, out, out_n, in, in_n);
    if (gcm_cipher(opaque, out, out_n, room, in, in_n)) return 1;
    return raise(gcm.instance, PROV_R_CIPHER_OPERATION_FAILED);
}

int gcm_final(void* opaque, unsigned char* out, std::size_t* out_n, std::size_t) {
    auto& gcm = *static_cast<Gcm*>(opaque);
    *out_n = 0;
    if (gcm.tls_ad_n != none) return record(gcm, out, out_n, nullptr, 0);
    if (!ready(gcm)) return 0;
    if (!gcm.encrypt && gcm.tag_n == none) return raise(gcm.instance, PROV_R_TAG_NOT_SET);
    if (!finish(gcm, gcm.tag, gcm.encrypt ? tag_bytes : gcm.tag_n)) return 0;
    if (gcm.encrypt) gcm.tag_n = tag_bytes;
    gcm.state = Vector::finished;
    return 1;
}

}  // namespace mpisec::provider
