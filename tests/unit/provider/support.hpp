// The provider in a library context of its own, and OpenSSL's default one in another.
#pragma once

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/provider.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace mpisec::provider::test {

using Bytes = std::vector<std::uint8_t>;

/// Everything that the libraries have, faster or not, is offered in tests; a machine's calibration is not one's own.
inline void offer_everything() {
    static const bool done = [] {
        setenv("MPISEC_PROVIDER_LIBRARY", "all", 0);
        setenv("MPISEC_PROVIDER_THREADS", "2", 0);
        return true;
    }();
    (void)done;
}

inline OSSL_LIB_CTX* context_with(const char* name) {
    offer_everything();
    OSSL_LIB_CTX* context = OSSL_LIB_CTX_new();
    if (OSSL_PROVIDER_set_default_search_path(context, MPISEC_PROVIDER_DIRECTORY) != 1 ||
        !OSSL_PROVIDER_load(context, name))
        return nullptr;
    return context;
}

inline OSSL_LIB_CTX* ours() {
    static OSSL_LIB_CTX* const made = context_with("libmpisec-provider");
    return made;
}

inline OSSL_LIB_CTX* openssl() {
    static OSSL_LIB_CTX* const made = context_with("default");
    return made;
}

/// Null when the provider does not have it; kept until the process ends.
inline const EVP_CIPHER* fetch(OSSL_LIB_CTX* context, const std::string& name) {
    return context ? EVP_CIPHER_fetch(context, name.c_str(), nullptr) : nullptr;
}

/// An EVP_CIPHER_CTX.
class Cipher {
  public:
    Cipher() = default;
    Cipher(const Cipher&) = delete;
    Cipher& operator=(const Cipher&) = delete;
    ~Cipher() { EVP_CIPHER_CTX_free(context_); }
    operator EVP_CIPHER_CTX*() const { return context_; }
    void become_copy() {
        EVP_CIPHER_CTX* copy = EVP_CIPHER_CTX_new();
        if (EVP_CIPHER_CTX_copy(copy, context_) != 1) ADD_FAILURE() << "the context cannot be copied";
        EVP_CIPHER_CTX_free(context_);
        context_ = copy;
    }

  private:
    EVP_CIPHER_CTX* context_ = EVP_CIPHER_CTX_new();
};

/// All of `in` in one update and the final call; empty on failure.
inline Bytes crypt(const EVP_CIPHER* cipher, bool encrypt, const Bytes& key, const Bytes& iv, const Bytes& in,
                   bool padding = false) {
    Cipher context;
    Bytes out(in.size() + 32);
    int n = 0, last = 0;
    if (EVP_CipherInit_ex2(context, cipher, key.data(), iv.empty() ? nullptr : iv.data(), encrypt ? 1 : 0,
                           nullptr) != 1 ||
        EVP_CIPHER_CTX_set_padding(context, padding ? 1 : 0) != 1 ||
        EVP_CipherUpdate(context, out.data(), &n, in.data(), static_cast<int>(in.size())) != 1 ||
        EVP_CipherFinal_ex(context, out.data() + n, &last) != 1)
        return {};
    out.resize(static_cast<std::size_t>(n + last));
    return out;
}

}  // namespace mpisec::provider::test
