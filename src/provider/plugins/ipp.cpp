// Intel Cryptography Primitives (IPP Cryptography): the modes without a tag, with VAES and AVX-512 where the
// CPU has them.
#include <ippcp.h>
#include <ippcpversion.h>

#include <algorithm>

#include "aead/plugins/hardware_aes.hpp"
#include "provider/plugins/keys.hpp"

// ECB is marked as deprecated, because a mode that it is.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#define MPISEC_TEXT_(x) #x
#define MPISEC_TEXT(x) MPISEC_TEXT_(x)

namespace {

using namespace mpisec::provider;

constexpr int largest_unit = 128 << 20;              // of XTS, in bits
constexpr std::size_t piece = std::size_t{1} << 30;  // IPP counts in int

bool initialized() {
    static const bool done = ippcpInit() >= 0;  // picks the code for this CPU; a warning is no failure
    return done;
}

const char* version() {
    return MPISEC_TEXT(CRYPTO_LIB_VERSION_MAJOR) "." MPISEC_TEXT(CRYPTO_LIB_VERSION_MINOR) "." MPISEC_TEXT(
        CRYPTO_LIB_VERSION_PATCH);
}

int has(int mode, std::size_t key_n) {
    if (!mpisec::aead::plugins::hardware_aes() || !initialized()) return 0;
    if (mode == mpisec_xts) return key_n == 32 || key_n == 64;
    return mode >= mpisec_ecb && mode <= mpisec_ctr && (key_n == 16 || key_n == 24 || key_n == 32);
}

class Key {
  public:
    Key(int mode, const std::uint8_t* key, std::size_t key_n) : mode_(mode) {
        if (!has(mode, key_n)) return;
        int size = 0;
        const int n = static_cast<int>(key_n);
        if (mode == mpisec_xts) {
            ready = ippsAES_XTSGetSize(&size) == ippStsNoErr && size <= static_cast<int>(sizeof state_) &&
                    ippsAES_XTSInit(key, n * 8, largest_unit, xts(), size) == ippStsNoErr;
        } else {
            ready = ippsAESGetSize(&size) == ippStsNoErr && size <= static_cast<int>(sizeof state_) &&
                    ippsAESInit(key, n, aes(), size) == ippStsNoErr;
        }
    }
    ~Key() { explicit_bzero(state_, sizeof state_); }

    bool crypt(bool encrypt, std::uint8_t* to, const std::uint8_t* from, std::size_t n,
               std::uint8_t* iv) const {
        if (mode_ == mpisec_xts) return unit(encrypt, to, from, n, iv);
        for (std::size_t done = 0; done < n; done += piece) {
            const int now = static_cast<int>(std::min(piece, n - done));
            if ((encrypt ? seal(to + done, from + done, now, iv) : open(to + done, from + done, now, iv)) !=
                ippStsNoErr)
                return false;
        }
        return true;
    }

    bool ready = false;

  private:
    IppsAESSpec* aes() const { return reinterpret_cast<IppsAESSpec*>(state_); }
    IppsAES_XTSSpec* xts() const { return reinterpret_cast<IppsAES_XTSSpec*>(state_); }

    IppStatus seal(std::uint8_t* to, const std::uint8_t* from, int n, std::uint8_t* iv) const {
        switch (mode_) {
            case mpisec_ecb:
                return ippsAESEncryptECB(from, to, n, aes());
            case mpisec_cbc:
                return chained(iv, to + n - 16, ippsAESEncryptCBC(from, to, n, aes(), iv));
            case mpisec_cfb:
                return chained(iv, to + n - 16, ippsAESEncryptCFB(from, to, n, 16, aes(), iv));
            case mpisec_cfb8:
                return shifted(iv, to, n, ippsAESEncryptCFB(from, to, n, 1, aes(), iv));
            case mpisec_ofb:
                return ippsAESEncryptOFB(from, to, n, 16, aes(), iv);
            default:
                return ippsAESEncryptCTR(from, to, n, aes(), iv, 128);
        }
    }

    // Where a block of ciphertext becomes the next vector, it is taken before the plaintext may replace it.
    IppStatus open(std::uint8_t* to, const std::uint8_t* from, int n, std::uint8_t* iv) const {
        std::uint8_t last[16] = {};
        if (mode_ == mpisec_cbc || mode_ == mpisec_cfb) std::memcpy(last, from + n - 16, 16);
        if (mode_ == mpisec_cfb8) {
            std::memcpy(last, iv, 16);
            shifted(last, from, n, ippStsNoErr);
        }
        switch (mode_) {
            case mpisec_ecb:
                return ippsAESDecryptECB(from, to, n, aes());
            case mpisec_cbc:
                return chained(iv, last, ippsAESDecryptCBC(from, to, n, aes(), iv));
            case mpisec_cfb:
                return chained(iv, last, ippsAESDecryptCFB(from, to, n, 16, aes(), iv));
            case mpisec_cfb8:
                return chained(iv, last, ippsAESDecryptCFB(from, to, n, 1, aes(), iv));
            case mpisec_ofb:
                return ippsAESDecryptOFB(from, to, n, 16, aes(), iv);
            default:
                return ippsAESDecryptCTR(from, to, n, aes(), iv, 128);
        }
    }

    static IppStatus chained(std::uint8_t* iv, const std::uint8_t* last, IppStatus status) {
        std::memcpy(iv, last, 16);
        return status;
    }

    static IppStatus shifted(std::uint8_t* iv, const std::uint8_t* ciphertext, int n, IppStatus status) {
        const auto size = static_cast<std::size_t>(n);
        const std::size_t fresh = std::min<std::size_t>(size, 16);
        std::memmove(iv, iv + fresh, 16 - fresh);
        std::memcpy(iv + 16 - fresh, ciphertext + size - fresh, fresh);
        return status;
    }

    bool unit(bool encrypt, std::uint8_t* to, const std::uint8_t* from, std::size_t n,
              const std::uint8_t* tweak) const {
        if (n > largest_unit / 8) return false;
        const int bits = static_cast<int>(n * 8);
        return (encrypt ? ippsAES_XTSEncrypt(from, to, bits, xts(), tweak, 0)
                        : ippsAES_XTSDecrypt(from, to, bits, xts(), tweak, 0)) == ippStsNoErr;
    }

    int mode_;
    alignas(64) mutable std::uint8_t state_[2048];  // its size is known at run time only: about 1,000
};

int crypt(void* key, int encrypt, std::uint8_t* to, const std::uint8_t* from, std::size_t n,
          std::uint8_t* iv) {
    return static_cast<Key*>(key)->crypt(encrypt != 0, to, from, n, iv) ? 0 : -1;
}

void* key_new(int mode, const std::uint8_t* key, std::size_t key_n, int) {
    return make<Key>(mode, key, key_n);
}

}  // namespace

MPISEC_CIPHER_PLUGIN_TABLE = {MPISEC_CIPHER_PLUGIN_VERSION,
                              "ipp",
                              version,
                              has_with_room<has, Key>,
                              key_new,
                              key_free<Key>,
                              crypt,
                              nullptr,
                              nullptr,
                              nullptr,
                              nullptr,
                              nullptr,
                              nullptr};
