// Intel Cryptography Primitives (IPP Cryptography). It only computes tags: on opening this plug-in compares them.
#include <ippcp.h>
#include <ippcpversion.h>

#include <algorithm>

#include "aead/plugins/hardware_aes.hpp"
#include "aead/plugins/plugin.hpp"
#include "base/constant_time.hpp"
#include "base/text_of_macro.hpp"

namespace {

using namespace mpisec::aead;

constexpr std::size_t piece = std::size_t{1} << 30;  // IPP counts in int

bool initialized() {
    static const bool done = ippcpInit() >= 0;  // picks the code for this CPU; a warning is not a failure
    return done;
}

int has(int cipher) {
    switch (static_cast<Cipher>(cipher)) {
        case Cipher::aes_128_gcm:
        case Cipher::aes_256_gcm:
            return plugins::hardware_aes() && initialized();
        default:
            return 0;
    }
}

const char* version() {
    return MPISEC_TEXT(CRYPTO_LIB_VERSION_MAJOR) "." MPISEC_TEXT(CRYPTO_LIB_VERSION_MINOR) "." MPISEC_TEXT(
        CRYPTO_LIB_VERSION_PATCH);
}

class State {
  public:
    State(Cipher cipher, const std::uint8_t* key) {
        int size = 0;
        ready = has(static_cast<int>(cipher)) && ippsAES_GCMGetSize(&size) == ippStsNoErr &&
                size <= static_cast<int>(sizeof gcm_);
        if (!ready) return;
        int key_n = cipher == Cipher::aes_128_gcm ? 16 : 32;
        ready = ippsAES_GCMInit(key, key_n, gcm(), sizeof gcm_) == ippStsNoErr;
    }
    ~State() { explicit_bzero(gcm_, sizeof gcm_); }

    bool seal(std::uint8_t* to, const std::uint8_t* from, std::size_t n, const std::uint8_t* nonce,
              const std::uint8_t* ad, std::size_t ad_n) {
        return start(nonce, ad, ad_n) && run(ippsAES_GCMEncrypt, to, from, n) &&
               ippsAES_GCMGetTag(to + n, tag_bytes, gcm()) == ippStsNoErr;
    }

    bool open(std::uint8_t* to, const std::uint8_t* from, std::size_t n, const std::uint8_t* nonce,
              const std::uint8_t* ad, std::size_t ad_n) {
        std::uint8_t expected[tag_bytes] = {};
        return start(nonce, ad, ad_n) && run(ippsAES_GCMDecrypt, to, from, n) &&
               ippsAES_GCMGetTag(expected, tag_bytes, gcm()) == ippStsNoErr &&
               mpisec::is_right_tag(expected, from + n);
    }

    bool ready;

  private:
    IppsAES_GCMState* gcm() { return reinterpret_cast<IppsAES_GCMState*>(gcm_); }

    bool start(const std::uint8_t* nonce, const std::uint8_t* ad, std::size_t ad_n) {
        return ad_n <= piece &&
               ippsAES_GCMStart(nonce, nonce_bytes, ad, static_cast<int>(ad_n), gcm()) == ippStsNoErr;
    }

    template <class Process>
    bool run(Process process, std::uint8_t* to, const std::uint8_t* from, std::size_t n) {
        for (std::size_t done = 0; done < n; done += piece) {
            int now = static_cast<int>(std::min(piece, n - done));
            if (process(from + done, to + done, now, gcm()) != ippStsNoErr) return false;
        }
        return true;
    }

    alignas(64) std::uint8_t gcm_[2048];  // its size, about 1,000, is known only at run time
};

}  // namespace

MPISEC_AEAD_PLUGIN("ipp", version, has, State)
