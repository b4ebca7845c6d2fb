// OpenSSL's default provider through EVP: what the others are compared with, and who serves what they cannot.
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/provider.h>

#include <array>
#include <string>

#include "provider/evp_message.hpp"
#include "provider/libraries.hpp"
#include "provider/message_calls.hpp"

namespace mpisec::provider {
namespace {

OSSL_LIB_CTX* own_context() {
    static OSSL_LIB_CTX* const made = [] {
        OSSL_LIB_CTX* context = OSSL_LIB_CTX_new();
        if (context && !OSSL_PROVIDER_load(context, "default")) {
            OSSL_LIB_CTX_free(context);
            context = nullptr;
        }
        return context;
    }();
    return made;
}

std::string cipher_name(int mode, std::size_t key_n) {
    static constexpr std::array mode_names = {"ECB", "CBC", "CFB", "CFB8", "OFB",
                                              "CTR", "XTS", "GCM", "",     "CFB1"};
    if (mode == mpisec_chacha) return "ChaCha20-Poly1305";
    if (mode == mpisec_xts) key_n /= 2;
    return "AES-" + std::to_string(key_n * 8) + "-" + mode_names[static_cast<std::size_t>(mode - mpisec_ecb)];
}

struct Key : EvpMessage {
    Key(EVP_CIPHER_CTX* made, bool without_vector)
        : EvpMessage(made), context(made), vectorless(without_vector) {}

    EVP_CIPHER_CTX* context;
    bool vectorless;
};
using OpensslCalls = MessageCalls<Key>;

EVP_CIPHER_CTX* context_of(void* key) {
    return static_cast<Key*>(key)->context;
}

void key_free(void* key) {
    if (!key) return;
    EVP_CIPHER_CTX_free(context_of(key));  // wipes
    delete static_cast<Key*>(key);
}

void* key_new(int mode, const std::uint8_t* key, std::size_t, int encrypt, EVP_CIPHER* cipher) {
    auto* made = new Key(EVP_CIPHER_CTX_new(), mode == mpisec_ecb);
    if (made->context &&
        EVP_CipherInit_ex2(made->context, cipher, key, nullptr, encrypt ? 1 : 0, nullptr) == 1 &&
        EVP_CIPHER_CTX_set_padding(made->context, 0) == 1)
        return made;
    key_free(made);
    return nullptr;
}

void* key_new(int mode, const std::uint8_t* key, std::size_t key_n, int encrypt) {
    EVP_CIPHER* cipher = openssl_cipher(mode, key_n);
    return cipher ? key_new(mode, key, key_n, encrypt, cipher) : nullptr;
}

int crypt(void* key, int encrypt, std::uint8_t* to, const std::uint8_t* from, std::size_t n,
          std::uint8_t* iv) {
    if (static_cast<Key*>(key)->vectorless) return OpensslCalls::update(key, encrypt, to, from, n);
    EVP_CIPHER_CTX* context = context_of(key);
    return EVP_CipherInit_ex2(context, nullptr, nullptr, iv, -1, nullptr) == 1 &&
                   OpensslCalls::update(key, encrypt, to, from, n) == 0 &&
                   EVP_CIPHER_CTX_get_updated_iv(context, iv, 16) == 1
               ? 0
               : -1;
}

void* copy(const void* key) {
    const Key* from = static_cast<const Key*>(key);
    auto* made = new Key(EVP_CIPHER_CTX_new(), from->vectorless);
    if (made->context && EVP_CIPHER_CTX_copy(made->context, from->context) == 1) return made;
    key_free(made);
    return nullptr;
}

int has(int mode, std::size_t key_n) {
    return openssl_cipher(mode, key_n) != nullptr;
}

const char* version() {
    return OpenSSL_version(OPENSSL_VERSION_STRING);
}

}  // namespace

EVP_CIPHER* openssl_cipher(int mode, std::size_t key_n) {
    struct Fetched {
        int mode;
        std::size_t key_n;
        EVP_CIPHER* cipher;
    };
    static const auto& all = *[] {
        auto* list = new std::vector<Fetched>;
        const auto add = [list](int one, std::size_t n) {
            list->push_back({one, n, EVP_CIPHER_fetch(own_context(), cipher_name(one, n).c_str(), nullptr)});
        };
        for (int one = mpisec_ecb; one <= mpisec_cfb1; ++one)
            for (const std::size_t n : {std::size_t{16}, std::size_t{24}, std::size_t{32}})
                if (one != mpisec_xts && one != mpisec_chacha) add(one, n);
        for (const std::size_t n : {std::size_t{32}, std::size_t{64}}) add(mpisec_xts, n);
        add(mpisec_chacha, 32);
        return list;
    }();
    if (!own_context()) return nullptr;
    for (const Fetched& one : all)
        if (one.mode == mode && one.key_n == key_n) return one.cipher;
    return nullptr;
}

const mpisec_cipher_plugin& openssl_library() {
    static constexpr mpisec_cipher_plugin table = {MPISEC_CIPHER_PLUGIN_VERSION,
                                                   "openssl",
                                                   version,
                                                   has,
                                                   key_new,
                                                   key_free,
                                                   crypt,
                                                   OpensslCalls::start,
                                                   OpensslCalls::associate,
                                                   OpensslCalls::update,
                                                   OpensslCalls::finish,
                                                   copy,
                                                   nullptr,
                                                   nullptr,
                                                   nullptr};
    return table;
}

}  // namespace mpisec::provider
