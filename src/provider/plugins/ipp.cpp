// Intel Cryptography Primitives (IPP Cryptography): the modes without a tag, with VAES and AVX-512 where the
// CPU has them.
#include <ippcp.h>
#include <ippcpversion.h>

#include <algorithm>

#include "aead/plugins/hardware_aes.hpp"
#include "base/text_of_macro.hpp"
#include "provider/plugins/keys.hpp"

// ECB is marked as deprecated, because a mode that it is.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

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
    return ((mode >= mpisec_ecb && mode <= mpisec_ctr) || mode == mpisec_cfb1) &&
           (key_n == 16 || key_n == 24 || key_n == 32);
}

/// The vector of CFB1: 128 bits into which each bit of ciphertext is shifted.
class ShiftRegister {
  public:
    explicit ShiftRegister(const std::uint8_t* from) {
        std::memcpy(&high_, from, 8), std::memcpy(&low_, from + 8, 8);
        high_ = __builtin_bswap64(high_), low_ = __builtin_bswap64(low_);
    }
    void store(std::uint8_t* to) const {
        const std::uint64_t high = __builtin_bswap64(high_), low = __builtin_bswap64(low_);
        std::memcpy(to, &high, 8), std::memcpy(to + 8, &low, 8);
    }
    void shift(unsigned bit) {
        high_ = high_ << 1 | low_ >> 63;
        low_ = low_ << 1 | bit;
    }

  private:
    std::uint64_t high_, low_;
};

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
        if (mode_ == mpisec_cfb1) return encrypt ? seal_bits(to, from, n, iv) : open_bits(to, from, n, iv);
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

    /// CFB1: each bit has a block of its own, which waits for the bit before.
    bool seal_bits(std::uint8_t* to, const std::uint8_t* from, std::size_t n, std::uint8_t* iv) const {
        ShiftRegister window(iv);
        std::uint8_t in[16], out[16];
        for (std::size_t i = 0; i < n; ++i) {
            unsigned sealed = 0;
            for (int bit = 7; bit >= 0; --bit) {
                window.store(in);
                if (ippsAESEncryptECB(in, out, 16, aes()) != ippStsNoErr) return false;
                const unsigned one = (from[i] >> bit ^ out[0] >> 7) & 1u;
                window.shift(one);
                sealed = sealed << 1 | one;
            }
            to[i] = static_cast<std::uint8_t>(sealed);
        }
        window.store(iv);
        explicit_bzero(out, sizeof out);
        return true;
    }

    /// Decrypting, all of them are known at once: the ciphertext, shifted by a bit each.
    bool open_bits(std::uint8_t* to, const std::uint8_t* from, std::size_t n, std::uint8_t* iv) const {
        constexpr std::size_t at_once = 16;  // bytes
        ShiftRegister window(iv);
        std::uint8_t blocks[at_once * 8 * 16];
        for (std::size_t done = 0; done < n; done += at_once) {
            const std::size_t now = std::min(at_once, n - done);
            std::uint8_t* block = blocks;
            for (std::size_t i = 0; i < now; ++i)
                for (int bit = 7; bit >= 0; --bit, block += 16) {
                    window.store(block);
                    window.shift(from[done + i] >> bit & 1u);
                }
            if (ippsAESEncryptECB(blocks, blocks, static_cast<int>(now * 8 * 16), aes()) != ippStsNoErr)
                return false;
            for (std::size_t i = 0; i < now; ++i) {
                unsigned stream = 0;
                for (std::size_t bit = 0; bit < 8; ++bit)
                    stream = stream << 1 | blocks[(i * 8 + bit) * 16] >> 7;
                to[done + i] = static_cast<std::uint8_t>(from[done + i] ^ stream);
            }
        }
        window.store(iv);
        explicit_bzero(blocks, sizeof blocks);
        return true;
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
                              nullptr,
                              nullptr,
                              nullptr};
