#include "provider/parameters.hpp"

namespace mpisec::provider {

int get_traits(OSSL_PARAM parameters[], const Traits& traits) {
    return put(parameters, OSSL_CIPHER_PARAM_MODE, traits.evp_mode) &&
           put(parameters, OSSL_CIPHER_PARAM_AEAD, traits.aead) &&
           put(parameters, OSSL_CIPHER_PARAM_CUSTOM_IV, traits.custom_iv) &&
           put(parameters, OSSL_CIPHER_PARAM_CTS, traits.cts) &&
           put(parameters, OSSL_CIPHER_PARAM_TLS1_MULTIBLOCK, std::size_t{0}) &&
           put(parameters, OSSL_CIPHER_PARAM_HAS_RAND_KEY, std::size_t{0}) &&
           put(parameters, OSSL_CIPHER_PARAM_KEYLEN, traits.key_n) &&
           put(parameters, OSSL_CIPHER_PARAM_BLOCK_SIZE, traits.block_n) &&
           put(parameters, OSSL_CIPHER_PARAM_IVLEN, traits.iv_n);
}

const OSSL_PARAM* gettable_traits(void*) {
    static const OSSL_PARAM list[] = {OSSL_PARAM_uint(OSSL_CIPHER_PARAM_MODE, nullptr),
                                      OSSL_PARAM_size_t(OSSL_CIPHER_PARAM_KEYLEN, nullptr),
                                      OSSL_PARAM_size_t(OSSL_CIPHER_PARAM_IVLEN, nullptr),
                                      OSSL_PARAM_size_t(OSSL_CIPHER_PARAM_BLOCK_SIZE, nullptr),
                                      OSSL_PARAM_int(OSSL_CIPHER_PARAM_AEAD, nullptr),
                                      OSSL_PARAM_int(OSSL_CIPHER_PARAM_CUSTOM_IV, nullptr),
                                      OSSL_PARAM_int(OSSL_CIPHER_PARAM_CTS, nullptr),
                                      OSSL_PARAM_int(OSSL_CIPHER_PARAM_TLS1_MULTIBLOCK, nullptr),
                                      OSSL_PARAM_int(OSSL_CIPHER_PARAM_HAS_RAND_KEY, nullptr),
                                      OSSL_PARAM_END};
    return list;
}

bool put(OSSL_PARAM parameters[], const char* name, std::size_t value) {
    OSSL_PARAM* found = OSSL_PARAM_locate(parameters, name);
    return !found || OSSL_PARAM_set_size_t(found, value) == 1;
}

bool put(OSSL_PARAM parameters[], const char* name, const std::uint8_t* bytes, std::size_t n) {
    OSSL_PARAM* found = OSSL_PARAM_locate(parameters, name);
    if (!found) return true;
    return found->data_type == OSSL_PARAM_OCTET_PTR ? OSSL_PARAM_set_octet_ptr(found, bytes, n) == 1
                                                    : OSSL_PARAM_set_octet_string(found, bytes, n) == 1;
}

bool take(const OSSL_PARAM parameters[], const char* name, unsigned& value) {
    const OSSL_PARAM* found = OSSL_PARAM_locate_const(parameters, name);
    return !found || OSSL_PARAM_get_uint(found, &value) == 1;
}

bool take(const OSSL_PARAM parameters[], const char* name, std::size_t& value) {
    const OSSL_PARAM* found = OSSL_PARAM_locate_const(parameters, name);
    return !found || OSSL_PARAM_get_size_t(found, &value) == 1;
}

}  // namespace mpisec::provider
