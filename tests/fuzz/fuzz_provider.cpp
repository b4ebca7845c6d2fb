// The OpenSSL provider beside OpenSSL's own: any calls of EVP, in any pieces, in any order. The first byte names the
// cipher, the rest is a script (provider_script.hpp).
#include <openssl/provider.h>

#include <cstdlib>

#include "check.hpp"
#include "provider_script.hpp"

namespace {

OSSL_LIB_CTX* context_with(const char* provider) {
    setenv("MPISEC_PROVIDER_LIBRARY", "all", 0);
    OSSL_LIB_CTX* context = OSSL_LIB_CTX_new();
    FUZZ_CHECK(OSSL_PROVIDER_set_default_search_path(context, MPISEC_PROVIDER_DIRECTORY) == 1);
    FUZZ_CHECK(OSSL_PROVIDER_load(context, provider) != nullptr);
    return context;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace mpisec::provider::test;
    static OSSL_LIB_CTX *const openssl = context_with("default"), *const ours =
                                                                      context_with("libmpisec-provider");
    if (size < 1) return 0;
    const char* name = script_ciphers[data[0] % script_ciphers.size()];
    EVP_CIPHER *one = EVP_CIPHER_fetch(openssl, name, nullptr),
               *other = EVP_CIPHER_fetch(ours, name, nullptr);
    if (other) {
        const std::string difference = differing_step(one, other, data + 1, size - 1);
        if (!difference.empty()) std::fprintf(stderr, "%s\n", difference.c_str());
        FUZZ_CHECK(difference.empty());
    }
    EVP_CIPHER_free(one);
    EVP_CIPHER_free(other);
    return 0;
}
