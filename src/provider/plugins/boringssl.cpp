// BoringSSL (static, hidden): CBC and CTR with AES instructions, AES-GCM by pieces with VAES.
#include <openssl/aes.h>
#include <openssl/cipher.h>
#include <openssl/crypto.h>

#include <cstdlib>

#include "aead/plugins/hardware_aes.hpp"
#include "provider/evp_message.hpp"
#include "provider/message_calls.hpp"
#include "provider/plugins/keys.hpp"

// BoringSSL asks for memory here: what it allocates is key schedules.
namespace {
constexpr std::size_t header = 16, slot = 1024;
}  // namespace

extern "C" {

void* OPENSSL_memory_alloc(std::size_t n) {
    auto* at =
        static_cast<std::uint8_t*>(n + header <= slot ? mpisec::provider::slots<std::uint8_t[slot]>().take()
                                                      : std::calloc(1, n + header));
    if (!at) return nullptr;
    std::memcpy(at, &n, sizeof n);
    return at + header;
}

std::size_t OPENSSL_memory_get_size(void* memory) {
    std::size_t n = 0;
    std::memcpy(&n, static_cast<std::uint8_t*>(memory) - header, sizeof n);
    return n;
}

void OPENSSL_memory_free(void* memory) {
    const std::size_t n = OPENSSL_memory_get_size(memory);
    std::uint8_t* at = static_cast<std::uint8_t*>(memory) - header;
    if (n + header <= slot) return mpisec::provider::slots<std::uint8_t[slot]>().give_back(at);
    explicit_bzero(at, n + header);
    std::free(at);
}

}  // extern "C"

namespace {

using namespace mpisec::provider;

const EVP_CIPHER* gcm(std::size_t key_n) {
    return key_n == 16   ? EVP_aes_128_gcm()
           : key_n == 24 ? EVP_aes_192_gcm()
           : key_n == 32 ? EVP_aes_256_gcm()
                         : nullptr;
}

const char* version() {
    return MPISEC_BORINGSSL_VERSION;
}

// Without AES instructions OpenSSL has code that is as good.
int has(int mode, std::size_t key_n) {
    const bool known = mode == mpisec_cbc || mode == mpisec_ctr || mode == mpisec_gcm;
    return known && gcm(key_n) && mpisec::aead::plugins::hardware_aes();
}

class Key {
  public:
    Key(int mode, const std::uint8_t* key, std::size_t key_n, bool encrypt) : mode_(mode) {
        EVP_CIPHER_CTX_init(&message_);
        if (!has(mode, key_n)) return;
        const auto bits = static_cast<unsigned>(key_n * 8);
        if (mode == mpisec_gcm)
            ready = EVP_CipherInit_ex(&message_, gcm(key_n), nullptr, key, nullptr, encrypt) == 1;
        else if (encrypt || mode == mpisec_ctr)
            ready = AES_set_encrypt_key(key, bits, &key_) == 0;
        else
            ready = AES_set_decrypt_key(key, bits, &key_) == 0;
    }
    explicit Key(const Key* other) : mode_(other->mode_), key_(other->key_) {
        EVP_CIPHER_CTX_init(&message_);
        ready = mode_ != mpisec_gcm || EVP_CIPHER_CTX_copy(&message_, &other->message_) == 1;
    }
    ~Key() {
        EVP_CIPHER_CTX_cleanup(&message_);
        explicit_bzero(&key_, sizeof key_);
    }

    void crypt(int encrypt, std::uint8_t* to, const std::uint8_t* from, std::size_t n,
               std::uint8_t* iv) const {
        if (mode_ == mpisec_cbc) return AES_cbc_encrypt(from, to, n, &key_, iv, encrypt);
        std::uint8_t keystream[16];
        unsigned used = 0;
        AES_ctr128_encrypt(from, to, n, &key_, iv, keystream, &used);
        explicit_bzero(keystream, sizeof keystream);
    }

    bool start(const std::uint8_t* iv, std::size_t iv_n, const std::uint8_t* ad, std::size_t ad_n) {
        return EvpMessage(&message_).start(iv, iv_n, ad, ad_n);
    }
    bool associate(const std::uint8_t* ad, std::size_t n) { return EvpMessage(&message_).associate(ad, n); }
    bool update(bool encrypt, std::uint8_t* to, const std::uint8_t* from, std::size_t n) {
        return EvpMessage(&message_).update(encrypt, to, from, n);
    }
    bool finish(bool encrypt, std::uint8_t* tag, std::size_t tag_n) {
        return EvpMessage(&message_).finish(encrypt, tag, tag_n);
    }

    bool ready = false;

  private:
    int mode_;
    AES_KEY key_{};
    EVP_CIPHER_CTX message_;
};

void* key_new(int mode, const std::uint8_t* key, std::size_t key_n, int encrypt) {
    return make<Key>(mode, key, key_n, encrypt != 0);
}

void* copy(const void* key) {
    return make<Key>(static_cast<const Key*>(key));
}

int crypt(void* key, int encrypt, std::uint8_t* to, const std::uint8_t* from, std::size_t n,
          std::uint8_t* iv) {
    static_cast<const Key*>(key)->crypt(encrypt, to, from, n, iv);
    return 0;
}

}  // namespace

MPISEC_CIPHER_PLUGIN_TABLE = {MPISEC_CIPHER_PLUGIN_VERSION,
                              "boringssl",
                              version,
                              has_with_room<has, Key, std::uint8_t[slot]>,
                              key_new,
                              key_free<Key>,
                              crypt,
                              MessageCalls<Key>::start,
                              MessageCalls<Key>::associate,
                              MessageCalls<Key>::update,
                              MessageCalls<Key>::finish,
                              copy,
                              nullptr,
                              nullptr,
                              nullptr};
