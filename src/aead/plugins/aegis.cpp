// libaegis: the AEGIS family (draft-irtf-cfrg-aegis-aead), which chooses among AES, VAES and AVX-512 code at run time. A nonce is the 12
// bytes followed by zeros (plugin.h).
#include <aegis.h>
#include <aegis128l.h>
#include <aegis128x2.h>
#include <aegis128x4.h>
#include <aegis256.h>

#include "aead/plugins/plugin.hpp"

namespace {

using namespace mpisec::aead;

using Bytes = const std::uint8_t*;
using Encrypt = int (*)(std::uint8_t* sealed, std::size_t tag_n, Bytes plain, std::size_t plain_n, Bytes ad,
                        std::size_t ad_n, Bytes nonce, Bytes key);
using Decrypt = int (*)(std::uint8_t* plain, Bytes sealed, std::size_t sealed_n, std::size_t tag_n, Bytes ad,
                        std::size_t ad_n, Bytes nonce, Bytes key);

struct Algorithm {
    Cipher cipher;
    std::size_t key_bytes;
    Encrypt encrypt;
    Decrypt decrypt;
};

constexpr Algorithm algorithms[] = {
    {Cipher::aegis_128l, aegis128l_KEYBYTES, aegis128l_encrypt, aegis128l_decrypt},
    {Cipher::aegis_256, aegis256_KEYBYTES, aegis256_encrypt, aegis256_decrypt},
    {Cipher::aegis_128x2, aegis128x2_KEYBYTES, aegis128x2_encrypt, aegis128x2_decrypt},
    {Cipher::aegis_128x4, aegis128x4_KEYBYTES, aegis128x4_encrypt, aegis128x4_decrypt},
};

const Algorithm* find(Cipher cipher) {
    static const bool initialized = aegis_init() == 0;
    for (const Algorithm& algorithm : algorithms)
        if (initialized && algorithm.cipher == cipher) return &algorithm;
    return nullptr;
}

int has(int cipher) {
    return find(static_cast<Cipher>(cipher)) != nullptr;
}
const char* version() {
    return MPISEC_LIBAEGIS_VERSION;
}

class State {
  public:
    State(Cipher cipher, const std::uint8_t* key) : ready(find(cipher)), algorithm_(find(cipher)) {
        if (ready) std::memcpy(key_, key, algorithm_->key_bytes);
    }
    ~State() { explicit_bzero(key_, sizeof key_); }

    bool seal(std::uint8_t* to, const std::uint8_t* from, std::size_t n, const std::uint8_t* nonce,
              const std::uint8_t* ad, std::size_t ad_n) {
        std::memcpy(nonce_, nonce, nonce_bytes);
        return algorithm_->encrypt(to, tag_bytes, from, n, ad, ad_n, nonce_, key_) == 0;
    }

    bool open(std::uint8_t* to, const std::uint8_t* from, std::size_t n, const std::uint8_t* nonce,
              const std::uint8_t* ad, std::size_t ad_n) {
        std::memcpy(nonce_, nonce, nonce_bytes);
        return algorithm_->decrypt(to, from, n + tag_bytes, tag_bytes, ad, ad_n, nonce_, key_) == 0;
    }

    bool ready;

  private:
    const Algorithm* algorithm_;
    std::uint8_t key_[max_key_bytes] = {};
    std::uint8_t nonce_[aegis256_NPUBBYTES] = {};  // its tail stays zero
};

}  // namespace

MPISEC_AEAD_PLUGIN("aegis", version, has, State)
