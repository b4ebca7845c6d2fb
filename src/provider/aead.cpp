#include "provider/aead.hpp"

#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <string.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "base/locked_slab.hpp"
#include "provider/workers.hpp"

namespace mpisec::provider {
namespace {

constexpr std::size_t tag_bytes = 16, max_iv_bytes = 128, chacha_iv_bytes = 12, kept_ad_bytes = 256;
constexpr std::size_t none = static_cast<std::size_t>(-1);
// TLS 1.2 (RFC 5288): 4 bytes of the vector are the connection's, 8 travel in front of each record.
constexpr std::size_t tls_fixed_bytes = 4, tls_explicit_bytes = 8, tls_ad_bytes = 13;

enum class Vector { missing, given, used, finished };

struct Aead {
    Aead(const Instance* of, const Traits* algorithm)
        : instance(of), traits(algorithm), keys(algorithm->mode, algorithm->key_n) {}
    Aead(const Aead&) = default;
    ~Aead() { EVP_CIPHER_CTX_free(tls); }

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
    std::uint64_t text_n = 0;
    std::size_t ad_n = 0;
    std::uint8_t ad[kept_ad_bytes] = {};
    /// Of ChaCha20-Poly1305: records of TLS 1.2, whose numbers OpenSSL adds to the vector.
    EVP_CIPHER_CTX* tls = nullptr;
    Keyring keys;

    bool chacha() const { return traits->mode == mpisec_chacha; }
};

LockedSlab& aead_slots() {
    static LockedSlab* const slab = [] {
        auto* made = new LockedSlab(sizeof(Aead), LockedSlab::Fork::keep);
        made->reserve(256 * 1024);
        return made;
    }();
    return *slab;
}

mpisec_cipher_plugin const& table(const Aead& aead) {
    return *libraries()[aead.library];
}

/// The state of the message in the library that serves it.
void* message(Aead& aead) {
    return aead.keys.get(aead.library, aead.encrypt);
}

bool begin(Aead& aead, std::size_t library) {
    aead.library = library;
    void* key = message(aead);
    if (key && table(aead).start(key, aead.message_iv, aead.iv_n, aead.ad, aead.ad_n) == 0) return true;
    aead.library = none;
    return false;
}

/// More than can wait here is a matter for a library that takes it by pieces.
std::size_t library_for_much_data(const Aead& aead) {
    std::size_t i = 0;
    while (!libraries()[i]->associate || !libraries()[i]->has(aead.traits->mode, aead.traits->key_n)) ++i;
    return i;
}

bool associate(Aead& aead, const std::uint8_t* ad, std::size_t n) {
    if (aead.text_begun) return false;
    if (aead.library == none) {
        if (aead.ad_n + n <= kept_ad_bytes) {
            std::memcpy(aead.ad + aead.ad_n, ad, n);
            aead.ad_n += n;
            return true;
        }
        if (!begin(aead, library_for_much_data(aead))) return false;
    }
    return table(aead).associate(message(aead), ad, n) == 0;
}

std::size_t library_for_text(const Aead& aead, std::size_t n) {
    const bool shares =
        n >= shared_bytes && !aead.chacha() && aead.iv_n == 12 && gcm_can_share(aead.traits->key_n);
    return shares ? shared_gcm_index() : aead.keys.library_for(aead.encrypt, n);
}

/// Of one message: beyond it the counter would begin again, and not every library looks (SP 800-38D, 5.2.1.1; RFC 8439, 2.8).
std::uint64_t longest_text(const Aead& aead) {
    constexpr std::uint64_t gcm = (std::uint64_t{1} << 36) - 32, chacha = (std::uint64_t{1} << 38) - 64;
    return aead.chacha() ? chacha : gcm;
}

bool text(Aead& aead, std::uint8_t* to, const std::uint8_t* from, std::size_t n) {
    if (n > longest_text(aead) - aead.text_n) return false;
    aead.text_n += n;
    if (aead.library == none && !begin(aead, library_for_text(aead, n))) return false;
    aead.text_begun = true;
    return table(aead).update(message(aead), aead.encrypt ? 1 : 0, to, from, n) == 0;
}

bool finish(Aead& aead, std::uint8_t* tag, std::size_t tag_n) {
    if (aead.library == none && !begin(aead, aead.keys.library_for(aead.encrypt, 0))) return false;
    return table(aead).finish(message(aead), aead.encrypt ? 1 : 0, tag, tag_n) == 0;
}

void new_message(Aead& aead) {
    aead.library = none;
    aead.text_begun = false;
    aead.text_n = 0;
    aead.ad_n = 0;
    std::memcpy(aead.message_iv, aead.iv, aead.iv_n);
    aead.state = Vector::used;
}

/// SP 800-38D, 8.2.2: who gives no vector for encryption gets a random one.
bool random_vector(Aead& aead) {
    if (aead.chacha() || !aead.encrypt || aead.iv_n < 12 ||
        RAND_bytes(aead.iv, static_cast<int>(aead.iv_n)) != 1)
        return false;
    aead.state = Vector::given;
    return true;
}

bool ready(Aead& aead) {
    if (!aead.keys.is_set() || aead.state == Vector::finished) return false;
    if (aead.state == Vector::missing && !random_vector(aead)) return false;
    if (aead.state == Vector::given) new_message(aead);
    return true;
}

void count(Aead& aead) {
    for (std::size_t i = aead.iv_n; i-- > aead.iv_n - tls_explicit_bytes;)
        if (++aead.iv[i] != 0) return;
}

/// The vector for the next message, whose last n bytes go to `out`; then the counter is increased.
bool next_vector(Aead& aead, std::uint8_t* out, std::size_t n) {
    if (!aead.counts || !aead.keys.is_set()) return false;
    new_message(aead);
    if (n == 0 || n > aead.iv_n) n = aead.iv_n;
    std::memcpy(out, aead.iv + aead.iv_n - n, n);
    count(aead);
    return true;
}

bool peers_vector(Aead& aead, const std::uint8_t* in, std::size_t n) {
    if (!aead.counts || !aead.keys.is_set() || aead.encrypt || n > aead.iv_n) return false;
    std::memcpy(aead.iv + aead.iv_n - n, in, n);
    new_message(aead);
    return true;
}

/// In place: 8 bytes of vector, the text, 16 bytes of tag.
int record(Aead& aead, std::uint8_t* out, std::size_t* out_n, const std::uint8_t* in, std::size_t n) {
    *out_n = 0;
    bool good = aead.keys.is_set() && out == in && n >= tls_explicit_bytes + tag_bytes &&
                (!aead.encrypt || ++aead.records != 0);
    good = good && (aead.encrypt ? next_vector(aead, out, tls_explicit_bytes)
                                 : peers_vector(aead, out, tls_explicit_bytes));
    if (good) {
        const std::size_t text_n = n - tls_explicit_bytes - tag_bytes;
        std::uint8_t* at = out + tls_explicit_bytes;
        good = associate(aead, aead.tls_ad, aead.tls_ad_n) && text(aead, at, at, text_n) &&
               finish(aead, at + text_n, tag_bytes);
        if (good) *out_n = aead.encrypt ? n : text_n;
        if (!good && !aead.encrypt) OPENSSL_cleanse(at, text_n);
    }
    aead.state = Vector::finished;
    aead.tls_ad_n = none;
    return good ? 1 : 0;
}

/// The inner context for records of TLS 1.2, made when the first comes.
bool ready_for_records(Aead& aead) {
    if (aead.tls) return true;
    if (!aead.keys.is_set() || aead.state == Vector::missing) return false;
    aead.tls = EVP_CIPHER_CTX_new();
    return aead.tls && EVP_CipherInit_ex2(aead.tls, openssl_cipher(aead.traits->mode, aead.traits->key_n),
                                          aead.keys.bytes(), aead.iv, aead.encrypt ? 1 : 0, nullptr) == 1;
}

int chacha_record(Aead& aead, std::uint8_t* out, std::size_t* out_n, const std::uint8_t* in, std::size_t n) {
    aead.tls_ad_n = none;
    const int done = n < (1 << 20) ? EVP_Cipher(aead.tls, out, in, static_cast<unsigned>(n)) : -1;
    *out_n = done > 0 ? static_cast<std::size_t>(done) : 0;
    return done > 0 ? 1 : 0;
}

bool take_tls_ad(Aead& aead, const OSSL_PARAM& given) {
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

bool take_fixed(Aead& aead, const OSSL_PARAM& given) {
    if (aead.chacha()) {
        if (given.data_type != OSSL_PARAM_OCTET_STRING || given.data_size != chacha_iv_bytes) return false;
        std::memcpy(aead.iv, given.data, chacha_iv_bytes);
        aead.state = Vector::given;
        return true;
    }
    if (given.data_type != OSSL_PARAM_OCTET_STRING) return false;
    const std::size_t n = given.data_size;
    if (n == none) {  // the whole vector
        std::memcpy(aead.iv, given.data, aead.iv_n);
    } else {
        if (n < tls_fixed_bytes || n > aead.iv_n || aead.iv_n - n < tls_explicit_bytes) return false;
        std::memcpy(aead.iv, given.data, n);
        if (aead.encrypt && RAND_bytes(aead.iv + n, static_cast<int>(aead.iv_n - n)) != 1) return false;
    }
    aead.counts = true;
    aead.state = Vector::given;
    return true;
}

int take_tag(Aead& aead, const OSSL_PARAM& given) {
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

int take_vector_length(Aead& aead, const OSSL_PARAM& given) {
    std::size_t n = 0;
    if (OSSL_PARAM_get_size_t(&given, &n) != 1) return raise(aead.instance, PROV_R_FAILED_TO_GET_PARAMETER);
    if (aead.chacha() ? n != chacha_iv_bytes : n == 0 || n > sizeof aead.iv)
        return raise(aead.instance, PROV_R_INVALID_IV_LENGTH);
    if (n != aead.iv_n) {
        if (aead.state != Vector::missing) aead.state = Vector::finished;
        aead.iv_n = n;
    }
    return 1;
}

bool give_vector(Aead& aead, OSSL_PARAM parameters[], const char* name) {
    OSSL_PARAM* wanted = OSSL_PARAM_locate(parameters, name);
    if (!wanted) return true;
    if (aead.state == Vector::missing) return false;
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
    return slot ? new (slot) Aead(instance, traits) : nullptr;
}

void free_aead(void* context) {
    if (!context) return;
    static_cast<Aead*>(context)->~Aead();
    aead_slots().give_back(context);  // wipes
}

void* copy_aead(void* context) {
    const auto& from = *static_cast<const Aead*>(context);
    void* slot = aead_slots().take();
    if (!slot) return nullptr;
    auto* made = new (slot) Aead(from);
    made->tls = from.tls ? EVP_CIPHER_CTX_new() : nullptr;
    const bool with_tls = !from.tls || (made->tls && EVP_CIPHER_CTX_copy(made->tls, from.tls) == 1);
    if (with_tls && (from.library == none || made->keys.copy_state(from.keys, from.library))) return made;
    free_aead(made);
    return nullptr;
}

int init_aead(void* opaque, bool encrypt, const std::uint8_t* key, std::size_t key_n, const std::uint8_t* iv,
              std::size_t iv_n, const OSSL_PARAM parameters[]) {
    auto& aead = *static_cast<Aead*>(opaque);
    // A message cannot go on in the other direction.
    if (aead.encrypt != encrypt && aead.state == Vector::used) aead.state = Vector::finished;
    aead.encrypt = encrypt;
    EVP_CIPHER_CTX_free(aead.tls);
    aead.tls = nullptr;
    if (iv) {
        const bool fits = aead.chacha() ? iv_n == chacha_iv_bytes : iv_n > 0 && iv_n <= sizeof aead.iv;
        if (!fits) return raise(aead.instance, PROV_R_INVALID_IV_LENGTH);
        aead.iv_n = iv_n;
        std::memcpy(aead.iv, iv, iv_n);
        aead.state = Vector::given;
    }
    if (key) {
        if (key_n != aead.traits->key_n) return raise(aead.instance, PROV_R_INVALID_KEY_LENGTH);
        aead.keys.set(key, key_n);
        aead.records = 0;
        // A message cannot go on under another key, and no vector is used twice.
        if (!iv && aead.state == Vector::used) aead.state = Vector::finished;
    }
    return set_aead_parameters(opaque, parameters);
}

int get_aead_parameters(void* opaque, OSSL_PARAM parameters[]) {
    auto& aead = *static_cast<Aead*>(opaque);
    if (!put(parameters, OSSL_CIPHER_PARAM_IVLEN, aead.iv_n) ||
        !put(parameters, OSSL_CIPHER_PARAM_KEYLEN, aead.traits->key_n) ||
        !put(parameters, OSSL_CIPHER_PARAM_AEAD_TAGLEN, aead.tag_n == none ? tag_bytes : aead.tag_n) ||
        !put(parameters, OSSL_CIPHER_PARAM_AEAD_TLS1_AAD_PAD, tag_bytes) ||
        (!aead.chacha() && (!give_vector(aead, parameters, OSSL_CIPHER_PARAM_IV) ||
                            !give_vector(aead, parameters, OSSL_CIPHER_PARAM_UPDATED_IV))))
        return raise(aead.instance, PROV_R_FAILED_TO_SET_PARAMETER);
    if (OSSL_PARAM* tag = OSSL_PARAM_locate(parameters, OSSL_CIPHER_PARAM_AEAD_TAG)) {
        const std::size_t n = tag->data ? tag->data_size : tag_bytes;
        if (n == 0 || n > tag_bytes || !aead.encrypt || (aead.tag_n == none && !aead.chacha()))
            return raise(aead.instance, PROV_R_INVALID_TAG);
        if (OSSL_PARAM_set_octet_string(tag, aead.tag, n) != 1)
            return raise(aead.instance, PROV_R_FAILED_TO_SET_PARAMETER);
    }
    if (OSSL_PARAM* next = OSSL_PARAM_locate(parameters, OSSL_CIPHER_PARAM_AEAD_TLS1_GET_IV_GEN)) {
        if (!next->data || next->data_type != OSSL_PARAM_OCTET_STRING ||
            !next_vector(aead, static_cast<std::uint8_t*>(next->data), next->data_size))
            return 0;
    }
    return 1;
}

int set_aead_parameters(void* opaque, const OSSL_PARAM parameters[]) {
    auto& aead = *static_cast<Aead*>(opaque);
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
            !peers_vector(aead, static_cast<const std::uint8_t*>(peers->data), peers->data_size))
            return 0;
    std::size_t key_n = aead.traits->key_n;
    if (!take(parameters, OSSL_CIPHER_PARAM_KEYLEN, key_n) || key_n != aead.traits->key_n)
        return raise(aead.instance, PROV_R_INVALID_KEY_LENGTH);
    return 1;
}

int aead_cipher(void* opaque, unsigned char* out, std::size_t* out_n, std::size_t room,
                const unsigned char* in, std::size_t in_n) {
    auto& aead = *static_cast<Aead*>(opaque);
    if (room < in_n) return raise(aead.instance, PROV_R_OUTPUT_BUFFER_TOO_SMALL);
    if (aead.chacha() && in_n == 0) return *out_n = 0, 1;
    if (aead.chacha() && aead.tls_ad_n != none) return chacha_record(aead, out, out_n, in, in_n);
    if (aead.tls_ad_n != none) {  // libssl is told the length of the whole record, as by OpenSSL's own
        const int good = record(aead, out, out_n, in, in_n);
        if (good) *out_n = in_n;
        return good;
    }
    *out_n = 0;
    if (!in) return aead_final(opaque, out, out_n, room);
    if (!ready(aead) || !(out ? text(aead, out, in, in_n) : associate(aead, in, in_n))) return 0;
    *out_n = in_n;
    return 1;
}

int aead_update(void* opaque, unsigned char* out, std::size_t* out_n, std::size_t room,
                const unsigned char* in, std::size_t in_n) {
    auto& aead = *static_cast<Aead*>(opaque);
    *out_n = 0;
    if (in_n == 0) return 1;
    if (aead.tls_ad_n != none && room >= in_n && !aead.chacha()) return record(aead, out, out_n, in, in_n);
    if (aead_cipher(opaque, out, out_n, room, in, in_n)) return 1;
    return raise(aead.instance, PROV_R_CIPHER_OPERATION_FAILED);
}

int aead_final(void* opaque, unsigned char* out, std::size_t* out_n, std::size_t) {
    auto& aead = *static_cast<Aead*>(opaque);
    *out_n = 0;
    if (aead.tls_ad_n != none) return aead.chacha() ? 0 : record(aead, out, out_n, nullptr, 0);
    if (!ready(aead)) return 0;
    if (!aead.encrypt && aead.tag_n == none) return raise(aead.instance, PROV_R_TAG_NOT_SET);
    if (!finish(aead, aead.tag, aead.encrypt ? tag_bytes : aead.tag_n)) return 0;
    if (aead.encrypt && (!aead.chacha() || aead.tag_n == none)) aead.tag_n = tag_bytes;
    aead.state = Vector::finished;
    return 1;
}

}  // namespace mpisec::provider
