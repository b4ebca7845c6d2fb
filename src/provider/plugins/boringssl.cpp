// BoringSSL (static, hidden): CBC and CTR with AES instructions, AES-GCM by pieces with VAES.
#include <openssl/aes.h>
#include <openssl/cipher.h>
#include <openssl/crypto.h>

#include <algorithm>
#include <cstdlib>

#include "aead/plugins/hardware_aes.hpp"
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
        return EVP_CIPHER_CTX_ctrl(&message_, EVP_CTRL_AEAD_SET_IVLEN, static_cast<int>(iv_n), nullptr) ==
                   1 &&
               EVP_CipherInit_ex(&message_, nullptr, nullptr, nullptr, iv, -1) == 1 &&
               update(nullptr, ad, ad_n);
    }
    bool update(std::uint8_t* to, const std::uint8_t* from, std::size_t n) {
        constexpr std::size_t piece = std::size_t{1} << 30;  // it counts in int
        for (std::size_t done = 0; done < n; done += piece) {
            int written = 0;
            const int now = static_cast<int>(std::min(piece, n - done));
            if (EVP_CipherUpdate(&message_, to ? to + done : nullptr, &written, from + done, now) != 1)
                return false;
        }
        return true;
    }
    bool finish(bool encrypt, std::uint8_t* tag, std::size_t tag_n) {
        std::uint8_t none[16];
        int written = 0;
        const bool told = encrypt || EVP_CIPHER_CTX_ctrl(&message_, EVP_CTRL_AEAD_SET_TAG,
                                                         static_cast<int>(tag_n), tag) == 1;
        return told && EVP_CipherFinal_ex(&message_, none, &written) == 1 &&
               (!encrypt || EVP_CIPHER_CTX_ctrl(&message_, EVP_CTRL_AEAD_GET_TAG, 16, tag) == 1);
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

int start(void* key, const std::uint8_t* iv, std::size_t iv_n, const std::uint8_t* ad, std::size_t ad_n) {
    return static_cast<Key*>(key)->start(iv, iv_n, ad, ad_n) ? 0 : -1;
}

int associate(void* key, const std::uint8_t* ad, std::size_t ad_n) {
    return static_cast<Key*>(key)->update(nullptr, ad, ad_n) ? 0 : -1;
}

int update(void* key, int, std::uint8_t* to, const std::uint8_t* from, std::size_t n) {
    return static_cast<Key*>(key)->update(to, from, n) ? 0 : -1;
}

int finish(void* key, int encrypt, std::uint8_t* tag, std::size_t tag_n) {
    return static_cast<Key*>(key)->finish(encrypt != 0, tag, tag_n) ? 0 : -1;
}

}  // namespace

MPISEC_CIPHER_PLUGIN_TABLE = {MPISEC_CIPHER_PLUGIN_VERSION,
                              "boringssl",
                              version,
                              has_with_room<has, Key, std::uint8_t[slot]>,
                              key_new,
                              key_free<Key>,
                              crypt,
                              start,
                              associate,
                              update,
                              finish,
                              copy,
                              nullptr};
