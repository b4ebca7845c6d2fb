#include "provider/context.hpp"

#include <cstring>
#include <new>
#include <utility>

#include "base/locked_slab.hpp"
#include "provider/batches.hpp"
#include "provider/workers.hpp"

namespace mpisec::provider {
namespace {

LockedSlab& context_slots() {
    static LockedSlab* const slab = [] {
        auto* made = new LockedSlab(sizeof(Context), LockedSlab::Fork::keep);
        made->reserve(256 * 1024);
        return made;
    }();
    return *slab;
}

bool has_vector(const Traits& traits) {
    return traits.iv_n > 0;
}

/// Modes of earlier OpenSSL that start again with the first vector when they are given none.
bool vector_returns(int mode) {
    return mode == mpisec_cbc || mode == mpisec_cfb || mode == mpisec_cfb8 || mode == mpisec_cfb1 ||
           mode == mpisec_ofb;
}

}  // namespace

Context::~Context() {
    EVP_CIPHER_CTX_free(tls);
    free_pipes(pipes);
}

bool Context::crypt(std::uint8_t* to, const std::uint8_t* from, std::size_t n) {
    try {
        if (keys.mode() == mpisec_cbc && encrypt && n >= batched_bytes && in_async_job())
            return encrypt_in_batch(keys, to, from, n, iv);
        if (n >= shared_bytes && can_share(keys.mode(), encrypt))
            return crypt_on_threads(keys, encrypt, to, from, n, iv);
    } catch (const std::bad_alloc&) {  // before anything was encrypted or decrypted
    }
    return keys.crypt(encrypt, to, from, n, iv);
}

void reserve_contexts() {
    context_slots();
}

void* new_context(const Instance* instance, const Traits* traits) {
    void* slot = context_slots().take();
    return slot ? new (slot) Context(instance, traits) : nullptr;
}

void free_context(void* context) {
    if (!context) return;
    static_cast<Context*>(context)->~Context();
    context_slots().give_back(context);  // wipes
}

void* copy_context(void* context) {
    const auto& from = *static_cast<const Context*>(context);
    void* slot = context_slots().take();
    if (!slot) return nullptr;
    auto* made = new (slot) Context(from);
    made->tls = from.tls ? EVP_CIPHER_CTX_new() : nullptr;
    made->pipes = copy_pipes(from.pipes);
    if ((!from.tls || (made->tls && EVP_CIPHER_CTX_copy(made->tls, from.tls) == 1)) &&
        (!from.pipes || made->pipes))
        return made;
    free_context(made);
    return nullptr;
}

int init(Context& context, bool encrypt, const std::uint8_t* key, std::size_t key_n, const std::uint8_t* iv,
         std::size_t iv_n, const OSSL_PARAM parameters[]) {
    context.num = 0;
    context.buffered = 0;
    context.updated = false;
    context.encrypt = encrypt;
    EVP_CIPHER_CTX_free(context.tls);
    context.tls = nullptr;
    free_pipes(std::exchange(context.pipes, nullptr));
    if (iv && has_vector(*context.traits)) {
        if (iv_n != context.traits->iv_n) return raise(context.instance, PROV_R_INVALID_IV_LENGTH);
        context.vector_set = true;
        std::memcpy(context.iv, iv, iv_n);
        std::memcpy(context.first_iv, iv, iv_n);
    }
    if (!iv && context.vector_set && vector_returns(context.traits->mode))
        std::memcpy(context.iv, context.first_iv, sizeof context.iv);
    if (key) {
        if (key_n != context.traits->key_n) return raise(context.instance, PROV_R_INVALID_KEY_LENGTH);
        context.keys.set(key, key_n);
    }
    return set_parameters(&context, parameters);
}

int get_parameters(void* opaque, OSSL_PARAM parameters[]) {
    auto& context = *static_cast<Context*>(opaque);
    const Traits& traits = *context.traits;
    bool good = put(parameters, OSSL_CIPHER_PARAM_IVLEN, traits.iv_n) &&
                put(parameters, OSSL_CIPHER_PARAM_KEYLEN, traits.key_n) &&
                put(parameters, OSSL_CIPHER_PARAM_PADDING, context.padding) &&
                put(parameters, OSSL_CIPHER_PARAM_NUM, context.num) &&
                put(parameters, OSSL_CIPHER_PARAM_IV, context.first_iv, traits.iv_n) &&
                put(parameters, OSSL_CIPHER_PARAM_UPDATED_IV, context.iv, traits.iv_n);
    if (OSSL_PARAM* mac = OSSL_PARAM_locate(parameters, OSSL_CIPHER_PARAM_TLS_MAC)) {
        OSSL_PARAM inner[2] = {*mac, OSSL_PARAM_END};
        good = good && context.tls && EVP_CIPHER_CTX_get_params(context.tls, inner) == 1;
        *mac = inner[0];
    }
    OSSL_PARAM* stealing = OSSL_PARAM_locate(parameters, OSSL_CIPHER_PARAM_CTS_MODE);
    if (stealing && traits.cts)
        good = good && OSSL_PARAM_set_utf8_string(stealing, cts_name(context.cts_variant)) == 1;
    return good ? 1 : raise(context.instance, PROV_R_FAILED_TO_SET_PARAMETER);
}

int set_parameters(void* opaque, const OSSL_PARAM parameters[]) {
    auto& context = *static_cast<Context*>(opaque);
    if (!parameters) return 1;
    std::size_t key_n = context.traits->key_n;
    unsigned num = context.num;
    const bool good = take(parameters, OSSL_CIPHER_PARAM_PADDING, context.padding) &&
                      take(parameters, OSSL_CIPHER_PARAM_NUM, num) &&
                      take(parameters, OSSL_CIPHER_PARAM_USE_BITS, context.use_bits) &&
                      take(parameters, OSSL_CIPHER_PARAM_TLS_VERSION, context.tls_version) &&
                      take(parameters, OSSL_CIPHER_PARAM_TLS_MAC_SIZE, context.tls_mac_n) &&
                      take(parameters, OSSL_CIPHER_PARAM_KEYLEN, key_n);
    if (!good || num >= block_bytes) return raise(context.instance, PROV_R_FAILED_TO_GET_PARAMETER);
    context.num = num;
    context.padding = context.padding ? 1 : 0;
    if (key_n != context.traits->key_n) return raise(context.instance, PROV_R_INVALID_KEY_LENGTH);
    const OSSL_PARAM* stealing = OSSL_PARAM_locate_const(parameters, OSSL_CIPHER_PARAM_CTS_MODE);
    if (stealing && context.traits->cts) {
        const unsigned variant = stealing->data_type == OSSL_PARAM_UTF8_STRING
                                     ? cts_variant(static_cast<const char*>(stealing->data))
                                     : 0;
        if (!variant) return raise(context.instance, PROV_R_FAILED_TO_GET_PARAMETER);
        context.cts_variant = variant;
    }
    return 1;
}

}  // namespace mpisec::provider
