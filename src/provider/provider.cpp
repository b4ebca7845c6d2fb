// The OpenSSL provider (docs/provider.md): AES by whichever library is fastest on this machine. What no library
// does faster than OpenSSL's default provider is not offered, so that OpenSSL goes on serving it.
#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>

#include <vector>

#include "base/version.hpp"
#include "provider/aead.hpp"
#include "provider/batches.hpp"
#include "provider/choice.hpp"
#include "provider/context.hpp"
#include "provider/errors.hpp"

namespace mpisec::provider {
namespace {

using Function = void (*)();

template <class Pointer>
constexpr Function any(Pointer function) {
    return reinterpret_cast<Function>(function);
}

// --- What all ciphers without a tag share.

int encrypt_init(void* context, const unsigned char* key, std::size_t key_n, const unsigned char* iv,
                 std::size_t iv_n, const OSSL_PARAM parameters[]) {
    return init(*static_cast<Context*>(context), true, key, key_n, iv, iv_n, parameters);
}

int decrypt_init(void* context, const unsigned char* key, std::size_t key_n, const unsigned char* iv,
                 std::size_t iv_n, const OSSL_PARAM parameters[]) {
    return init(*static_cast<Context*>(context), false, key, key_n, iv, iv_n, parameters);
}

int aead_encrypt_init(void* context, const unsigned char* key, std::size_t key_n, const unsigned char* iv,
                      std::size_t iv_n, const OSSL_PARAM parameters[]) {
    return init_aead(context, true, key, key_n, iv, iv_n, parameters);
}

int aead_decrypt_init(void* context, const unsigned char* key, std::size_t key_n, const unsigned char* iv,
                      std::size_t iv_n, const OSSL_PARAM parameters[]) {
    return init_aead(context, false, key, key_n, iv, iv_n, parameters);
}

const OSSL_PARAM* gettable_parameters(void*, void*) {
    static const OSSL_PARAM list[] = {OSSL_PARAM_size_t(OSSL_CIPHER_PARAM_KEYLEN, nullptr),
                                      OSSL_PARAM_size_t(OSSL_CIPHER_PARAM_IVLEN, nullptr),
                                      OSSL_PARAM_uint(OSSL_CIPHER_PARAM_PADDING, nullptr),
                                      OSSL_PARAM_uint(OSSL_CIPHER_PARAM_NUM, nullptr),
                                      OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_IV, nullptr, 0),
                                      OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_UPDATED_IV, nullptr, 0),
                                      OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_TLS_MAC, nullptr, 0),
                                      OSSL_PARAM_utf8_string(OSSL_CIPHER_PARAM_CTS_MODE, nullptr, 0),
                                      OSSL_PARAM_END};
    return list;
}

const OSSL_PARAM* settable_parameters(void*, void*) {
    static const OSSL_PARAM list[] = {OSSL_PARAM_uint(OSSL_CIPHER_PARAM_PADDING, nullptr),
                                      OSSL_PARAM_uint(OSSL_CIPHER_PARAM_NUM, nullptr),
                                      OSSL_PARAM_uint(OSSL_CIPHER_PARAM_USE_BITS, nullptr),
                                      OSSL_PARAM_uint(OSSL_CIPHER_PARAM_TLS_VERSION, nullptr),
                                      OSSL_PARAM_size_t(OSSL_CIPHER_PARAM_TLS_MAC_SIZE, nullptr),
                                      OSSL_PARAM_utf8_string(OSSL_CIPHER_PARAM_CTS_MODE, nullptr, 0),
                                      OSSL_PARAM_END};
    return list;
}

const OSSL_PARAM* gettable_aead_parameters(void*, void*) {
    static const OSSL_PARAM list[] = {
        OSSL_PARAM_size_t(OSSL_CIPHER_PARAM_KEYLEN, nullptr),
        OSSL_PARAM_size_t(OSSL_CIPHER_PARAM_IVLEN, nullptr),
        OSSL_PARAM_size_t(OSSL_CIPHER_PARAM_AEAD_TAGLEN, nullptr),
        OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_IV, nullptr, 0),
        OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_UPDATED_IV, nullptr, 0),
        OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, nullptr, 0),
        OSSL_PARAM_size_t(OSSL_CIPHER_PARAM_AEAD_TLS1_AAD_PAD, nullptr),
        OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_AEAD_TLS1_GET_IV_GEN, nullptr, 0),
        OSSL_PARAM_END};
    return list;
}

const OSSL_PARAM* settable_aead_parameters(void*, void*) {
    static const OSSL_PARAM list[] = {
        OSSL_PARAM_size_t(OSSL_CIPHER_PARAM_AEAD_IVLEN, nullptr),
        OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, nullptr, 0),
        OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_AEAD_TLS1_AAD, nullptr, 0),
        OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_AEAD_TLS1_IV_FIXED, nullptr, 0),
        OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_AEAD_TLS1_SET_IV_INV, nullptr, 0),
        OSSL_PARAM_END};
    return list;
}

// --- A dispatch table for each algorithm. EVP asks an algorithm for its traits without naming it, and makes a
// context without naming the algorithm: these two are a function each.

template <const Traits& traits>
int get_algorithm_parameters(OSSL_PARAM parameters[]) {
    return get_traits(parameters, traits);
}

template <const Traits& traits>
void* new_algorithm_context(void* instance) {
    return traits.aead ? new_aead(static_cast<const Instance*>(instance), &traits)
                       : new_context(static_cast<const Instance*>(instance), &traits);
}

/// The three functions that differ among the modes without a tag.
struct Calls {
    Function update, final, cipher;
};

template <const Traits& traits>
Calls calls() {
    if (traits.cts) return {any(cts_update), any(cts_final), any(block_cipher)};
    if (traits.mode == mpisec_xts) return {any(xts_update), any(cts_final), any(xts_update)};
    if (traits.mode == mpisec_ecb || traits.mode == mpisec_cbc)
        return {any(block_update), any(block_final), any(block_cipher)};
    return {any(stream_update), any(stream_final), any(stream_update)};
}

template <const Traits& traits>
const OSSL_DISPATCH* dispatch() {
    static const bool pipelines = traits.mode == mpisec_cbc && !traits.cts && has_lanes();
    static const OSSL_DISPATCH table[] = {
        {OSSL_FUNC_CIPHER_NEWCTX, any(new_algorithm_context<traits>)},
        {OSSL_FUNC_CIPHER_FREECTX, any(free_context)},
        {OSSL_FUNC_CIPHER_DUPCTX, any(copy_context)},
        {OSSL_FUNC_CIPHER_ENCRYPT_INIT, any(encrypt_init)},
        {OSSL_FUNC_CIPHER_DECRYPT_INIT, any(decrypt_init)},
        {OSSL_FUNC_CIPHER_UPDATE, calls<traits>().update},
        {OSSL_FUNC_CIPHER_FINAL, calls<traits>().final},
        {OSSL_FUNC_CIPHER_CIPHER, calls<traits>().cipher},
        {OSSL_FUNC_CIPHER_GET_PARAMS, any(get_algorithm_parameters<traits>)},
        {OSSL_FUNC_CIPHER_GETTABLE_PARAMS, any(gettable_traits)},
        {OSSL_FUNC_CIPHER_GET_CTX_PARAMS, any(get_parameters)},
        {OSSL_FUNC_CIPHER_GETTABLE_CTX_PARAMS, any(gettable_parameters)},
        {OSSL_FUNC_CIPHER_SET_CTX_PARAMS, any(set_parameters)},
        {OSSL_FUNC_CIPHER_SETTABLE_CTX_PARAMS, any(settable_parameters)},
        {pipelines ? pipeline_encrypt_init_id : 0, any(pipeline_encrypt_init)},  // 0 ends the table
        {pipeline_update_id, any(pipeline_update)},
        {pipeline_final_id, any(pipeline_final)},
        {0, nullptr}};
    return table;
}

template <const Traits& traits>
const OSSL_DISPATCH* aead_dispatch() {
    static const OSSL_DISPATCH table[] = {
        {OSSL_FUNC_CIPHER_NEWCTX, any(new_algorithm_context<traits>)},
        {OSSL_FUNC_CIPHER_FREECTX, any(free_aead)},
        {OSSL_FUNC_CIPHER_DUPCTX, any(copy_aead)},
        {OSSL_FUNC_CIPHER_ENCRYPT_INIT, any(aead_encrypt_init)},
        {OSSL_FUNC_CIPHER_DECRYPT_INIT, any(aead_decrypt_init)},
        {OSSL_FUNC_CIPHER_UPDATE, any(aead_update)},
        {OSSL_FUNC_CIPHER_FINAL, any(aead_final)},
        {OSSL_FUNC_CIPHER_CIPHER, any(aead_cipher)},
        {OSSL_FUNC_CIPHER_GET_PARAMS, any(get_algorithm_parameters<traits>)},
        {OSSL_FUNC_CIPHER_GETTABLE_PARAMS, any(gettable_traits)},
        {OSSL_FUNC_CIPHER_GET_CTX_PARAMS, any(get_aead_parameters)},
        {OSSL_FUNC_CIPHER_GETTABLE_CTX_PARAMS, any(gettable_aead_parameters)},
        {OSSL_FUNC_CIPHER_SET_CTX_PARAMS, any(set_aead_parameters)},
        {OSSL_FUNC_CIPHER_SETTABLE_CTX_PARAMS, any(settable_aead_parameters)},
        {0, nullptr}};
    return table;
}

struct Algorithm {
    const Traits* traits;
    const char* names;
    const OSSL_DISPATCH* table;
};

constexpr Traits traits_of(int mode, std::size_t key_n) {
    Traits traits;
    traits.mode = mode;
    traits.key_n = key_n;
    constexpr unsigned evp_modes[] = {0,
                                      EVP_CIPH_ECB_MODE,
                                      EVP_CIPH_CBC_MODE,
                                      EVP_CIPH_CFB_MODE,
                                      EVP_CIPH_CFB_MODE,
                                      EVP_CIPH_OFB_MODE,
                                      EVP_CIPH_CTR_MODE,
                                      EVP_CIPH_XTS_MODE,
                                      EVP_CIPH_GCM_MODE,
                                      EVP_CIPH_STREAM_CIPHER,
                                      EVP_CIPH_CFB_MODE};
    traits.evp_mode = evp_modes[mode];
    if (mode == mpisec_ecb || mode == mpisec_cbc) traits.block_n = block_bytes;
    if (mode == mpisec_ecb) traits.iv_n = 0;
    if (mode == mpisec_gcm || mode == mpisec_chacha) traits.iv_n = 12, traits.aead = true;
    traits.custom_iv = traits.aead || mode == mpisec_xts;
    return traits;
}

constexpr Traits stealing(std::size_t key_n) {
    Traits traits = traits_of(mpisec_cbc, key_n);
    traits.cts = true;
    return traits;
}

template <int mode, std::size_t key_n>
constexpr Traits traits = traits_of(mode, key_n);
template <std::size_t key_n>
constexpr Traits stealing_traits = stealing(key_n);

template <int mode, std::size_t key_n>
Algorithm plain(const char* names) {
    return {&traits<mode, key_n>, names, dispatch<traits<mode, key_n>>()};
}

template <std::size_t key_n>
Algorithm cts(const char* names) {
    return {&stealing_traits<key_n>, names, dispatch<stealing_traits<key_n>>()};
}

template <int mode, std::size_t key_n>
Algorithm aead(const char* names) {
    return {&traits<mode, key_n>, names, aead_dispatch<traits<mode, key_n>>()};
}

// The names are those of OpenSSL's default provider.
std::vector<Algorithm> all_algorithms() {
    return {
        plain<mpisec_ecb, 16>("AES-128-ECB:2.16.840.1.101.3.4.1.1"),
        plain<mpisec_ecb, 24>("AES-192-ECB:2.16.840.1.101.3.4.1.21"),
        plain<mpisec_ecb, 32>("AES-256-ECB:2.16.840.1.101.3.4.1.41"),
        plain<mpisec_cbc, 16>("AES-128-CBC:AES128:2.16.840.1.101.3.4.1.2"),
        plain<mpisec_cbc, 24>("AES-192-CBC:AES192:2.16.840.1.101.3.4.1.22"),
        plain<mpisec_cbc, 32>("AES-256-CBC:AES256:2.16.840.1.101.3.4.1.42"),
        cts<16>("AES-128-CBC-CTS"),
        cts<24>("AES-192-CBC-CTS"),
        cts<32>("AES-256-CBC-CTS"),
        plain<mpisec_cfb, 16>("AES-128-CFB:2.16.840.1.101.3.4.1.4"),
        plain<mpisec_cfb, 24>("AES-192-CFB:2.16.840.1.101.3.4.1.24"),
        plain<mpisec_cfb, 32>("AES-256-CFB:2.16.840.1.101.3.4.1.44"),
        plain<mpisec_cfb1, 16>("AES-128-CFB1"),
        plain<mpisec_cfb1, 24>("AES-192-CFB1"),
        plain<mpisec_cfb1, 32>("AES-256-CFB1"),
        plain<mpisec_cfb8, 16>("AES-128-CFB8"),
        plain<mpisec_cfb8, 24>("AES-192-CFB8"),
        plain<mpisec_cfb8, 32>("AES-256-CFB8"),
        plain<mpisec_ofb, 16>("AES-128-OFB:2.16.840.1.101.3.4.1.3"),
        plain<mpisec_ofb, 24>("AES-192-OFB:2.16.840.1.101.3.4.1.23"),
        plain<mpisec_ofb, 32>("AES-256-OFB:2.16.840.1.101.3.4.1.43"),
        plain<mpisec_ctr, 16>("AES-128-CTR"),
        plain<mpisec_ctr, 24>("AES-192-CTR"),
        plain<mpisec_ctr, 32>("AES-256-CTR"),
        plain<mpisec_xts, 32>("AES-128-XTS:1.3.111.2.1619.0.1.1"),
        plain<mpisec_xts, 64>("AES-256-XTS:1.3.111.2.1619.0.1.2"),
        aead<mpisec_gcm, 16>("AES-128-GCM:id-aes128-GCM:2.16.840.1.101.3.4.1.6"),
        aead<mpisec_gcm, 24>("AES-192-GCM:id-aes192-GCM:2.16.840.1.101.3.4.1.26"),
        aead<mpisec_gcm, 32>("AES-256-GCM:id-aes256-GCM:2.16.840.1.101.3.4.1.46"),
        aead<mpisec_chacha, 32>("ChaCha20-Poly1305"),
    };
}

const OSSL_ALGORITHM* offered_algorithms() {
    static const auto& list = *[] {
        auto* made = new std::vector<OSSL_ALGORITHM>;
        reserve_contexts();
        reserve_pipes();
        reserve_aead();
        for (const Algorithm& one : all_algorithms())
            if (choices().at({one.traits->mode, one.traits->key_n}).offered)
                made->push_back({one.names, "provider=mpisec", one.table, "by the fastest library"});
        made->push_back({nullptr, nullptr, nullptr, nullptr});
        return made;
    }();
    return list.data();
}

// --- The provider itself.

const OSSL_ALGORITHM* query(void*, int operation, int* no_cache) {
    *no_cache = 0;
    return operation == OSSL_OP_CIPHER ? offered_algorithms() : nullptr;
}

const OSSL_PARAM* gettable(void*) {
    static const OSSL_PARAM list[] = {OSSL_PARAM_utf8_ptr(OSSL_PROV_PARAM_NAME, nullptr, 0),
                                      OSSL_PARAM_utf8_ptr(OSSL_PROV_PARAM_VERSION, nullptr, 0),
                                      OSSL_PARAM_utf8_ptr(OSSL_PROV_PARAM_BUILDINFO, nullptr, 0),
                                      OSSL_PARAM_int(OSSL_PROV_PARAM_STATUS, nullptr), OSSL_PARAM_END};
    return list;
}

int get(void*, OSSL_PARAM parameters[]) {
    const auto text = [parameters](const char* name, const char* value) {
        OSSL_PARAM* found = OSSL_PARAM_locate(parameters, name);
        return !found || OSSL_PARAM_set_utf8_ptr(found, value) == 1;
    };
    OSSL_PARAM* status = OSSL_PARAM_locate(parameters, OSSL_PROV_PARAM_STATUS);
    return text(OSSL_PROV_PARAM_NAME, "MPIsec") && text(OSSL_PROV_PARAM_VERSION, version.data()) &&
           text(OSSL_PROV_PARAM_BUILDINFO, version.data()) && (!status || OSSL_PARAM_set_int(status, 1) == 1);
}

void teardown(void* instance) {
    delete static_cast<Instance*>(instance);
}

}  // namespace
}  // namespace mpisec::provider

extern "C" __attribute__((visibility("default"))) int OSSL_provider_init(const OSSL_CORE_HANDLE* core,
                                                                         const OSSL_DISPATCH* core_functions,
                                                                         const OSSL_DISPATCH** functions,
                                                                         void** instance) {
    using namespace mpisec::provider;
    static const OSSL_DISPATCH table[] = {{OSSL_FUNC_PROVIDER_TEARDOWN, any(teardown)},
                                          {OSSL_FUNC_PROVIDER_GETTABLE_PARAMS, any(gettable)},
                                          {OSSL_FUNC_PROVIDER_GET_PARAMS, any(get)},
                                          {OSSL_FUNC_PROVIDER_QUERY_OPERATION, any(query)},
                                          {0, nullptr}};
    *instance = new Instance(core, core_functions);
    *functions = table;
    return 1;
}
