// OSSL_PARAM lists, in few words.
#pragma once

#include <openssl/core_names.h>
#include <openssl/params.h>

#include <cstddef>
#include <cstdint>

#include "provider/errors.hpp"

namespace mpisec::provider {

/// What EVP asks about an algorithm.
struct Traits {
    int mode = 0;           ///< of provider/plugin.h
    unsigned evp_mode = 0;  ///< EVP_CIPH_…_MODE
    std::size_t key_n = 0;
    std::size_t block_n = 1;
    std::size_t iv_n = 16;
    bool aead = false, custom_iv = false, cts = false;
};

int get_traits(OSSL_PARAM parameters[], const Traits& traits);
const OSSL_PARAM* gettable_traits(void*);

/// Writes `value` where the list asks for `name`; false when it does not fit.
bool put(OSSL_PARAM parameters[], const char* name, std::size_t value);
/// The same for n bytes, as a copy or as a pointer, whichever the caller wants.
bool put(OSSL_PARAM parameters[], const char* name, const std::uint8_t* bytes, std::size_t n);
/// False only when the list has `name` with something that is no number.
bool take(const OSSL_PARAM parameters[], const char* name, unsigned& value);
bool take(const OSSL_PARAM parameters[], const char* name, std::size_t& value);

}  // namespace mpisec::provider
