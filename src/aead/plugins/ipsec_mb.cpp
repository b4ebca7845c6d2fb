// Intel Multi-Buffer Crypto for IPsec, through its direct (job-free) calls. It only computes tags: on opening this plug-in compares them.
#include <intel-ipsec-mb.h>

#include <optional>

#include "aead/plugins/hardware_aes.hpp"
#include "aead/plugins/plugin.hpp"
#include "base/constant_time.hpp"
#include "base/startup_pages.hpp"

namespace {

using namespace mpisec::aead;

/// The functions of the library's manager that suit this CPU. The manager itself, 200 KB, consists mostly of queues for its job calls.
struct Functions {
    explicit Functions(const IMB_MGR& mgr)
        : gcm128_pre(mgr.gcm128_pre),
          gcm256_pre(mgr.gcm256_pre),
          gcm128_enc(mgr.gcm128_enc),
          gcm128_dec(mgr.gcm128_dec),
          gcm256_enc(mgr.gcm256_enc),
          gcm256_dec(mgr.gcm256_dec),
          chacha_init(mgr.chacha20_poly1305_init),
          chacha_enc(mgr.chacha20_poly1305_enc_update),
          chacha_dec(mgr.chacha20_poly1305_dec_update),
          chacha_finalize(mgr.chacha20_poly1305_finalize) {}

    aes_gcm_pre_t gcm128_pre, gcm256_pre;
    aes_gcm_enc_dec_t gcm128_enc, gcm128_dec, gcm256_enc, gcm256_dec;
    chacha_poly_init_t chacha_init;
    chacha_poly_enc_dec_update_t chacha_enc, chacha_dec;
    chacha_poly_finalize_t chacha_finalize;
};

/// Null when the library does not work on this CPU.
const Functions* functions() {
    static const std::optional<Functions> found = []() -> std::optional<Functions> {
        IMB_MGR* mgr = alloc_mb_mgr(0);
        if (!mgr) return std::nullopt;
        IMB_ARCH arch = IMB_ARCH_NONE;
        init_mb_mgr_auto(mgr, &arch);
        std::optional<Functions> usable;
        if (imb_get_errno(mgr) == 0 && arch >= IMB_ARCH_SSE) usable.emplace(*mgr);
        free_mb_mgr(mgr);
        mpisec::release_startup_pages();  // it has tested every algorithm in its 12 MB
        return usable;
    }();
    return found ? &*found : nullptr;
}

int has(int cipher) {
    switch (static_cast<Cipher>(cipher)) {
        case Cipher::aes_128_gcm:
        case Cipher::aes_256_gcm:
        case Cipher::chacha20_poly1305:
            return plugins::hardware_aes() && functions();
        default:
            return 0;
    }
}

const char* version() {
    return imb_get_version_str();
}

class State {
  public:
    State(Cipher cipher, const std::uint8_t* key) : ready(has(static_cast<int>(cipher))), cipher_(cipher) {
        if (!ready) return;
        const Functions& library = *functions();
        if (cipher == Cipher::aes_128_gcm) {
            library.gcm128_pre(key, &gcm_key_);
            gcm_seal_ = library.gcm128_enc;
            gcm_open_ = library.gcm128_dec;
        }
        if (cipher == Cipher::aes_256_gcm) {
            library.gcm256_pre(key, &gcm_key_);
            gcm_seal_ = library.gcm256_enc;
            gcm_open_ = library.gcm256_dec;
        }
        if (cipher == Cipher::chacha20_poly1305)
            std::memcpy(chacha_key_, key, sizeof chacha_key_);
        else
            ready = gcm_seal_ && gcm_open_;
    }
    ~State() {
        explicit_bzero(&gcm_key_, sizeof gcm_key_);
        explicit_bzero(&gcm_, sizeof gcm_);
        explicit_bzero(&chacha_, sizeof chacha_);
        explicit_bzero(chacha_key_, sizeof chacha_key_);
    }

    bool seal(std::uint8_t* to, const std::uint8_t* from, std::size_t n, const std::uint8_t* nonce,
              const std::uint8_t* ad, std::size_t ad_n) {
        if (cipher_ == Cipher::aes_256_gcm || cipher_ == Cipher::aes_128_gcm) {
            gcm_seal_(&gcm_key_, &gcm_, to, from, n, nonce, ad, ad_n, to + n, tag_bytes);
        } else if (cipher_ == Cipher::chacha20_poly1305) {
            const Functions& library = *functions();
            library.chacha_init(chacha_key_, &chacha_, nonce, ad, ad_n);
            library.chacha_enc(chacha_key_, &chacha_, to, from, n);
            library.chacha_finalize(&chacha_, to + n, tag_bytes);
        } else {
            return false;
        }
        return true;
    }

    bool open(std::uint8_t* to, const std::uint8_t* from, std::size_t n, const std::uint8_t* nonce,
              const std::uint8_t* ad, std::size_t ad_n) {
        std::uint8_t expected[tag_bytes] = {};
        if (cipher_ == Cipher::aes_256_gcm || cipher_ == Cipher::aes_128_gcm) {
            gcm_open_(&gcm_key_, &gcm_, to, from, n, nonce, ad, ad_n, expected, tag_bytes);
        } else if (cipher_ == Cipher::chacha20_poly1305) {
            const Functions& library = *functions();
            library.chacha_init(chacha_key_, &chacha_, nonce, ad, ad_n);
            library.chacha_dec(chacha_key_, &chacha_, to, from, n);
            library.chacha_finalize(&chacha_, expected, tag_bytes);
        } else {
            return false;
        }
        return mpisec::is_right_tag(expected, from + n);
    }

    bool ready;

  private:
    Cipher cipher_;  // no cipher has the value 0, which a child finds here after fork()
    aes_gcm_enc_dec_t gcm_seal_ = nullptr, gcm_open_ = nullptr;  // of AES-GCM
    alignas(64) gcm_key_data gcm_key_;
    alignas(64) gcm_context_data gcm_;
    alignas(64) chacha20_poly1305_context_data chacha_;
    std::uint8_t chacha_key_[32];
};

}  // namespace

MPISEC_AEAD_PLUGIN("ipsec-mb", version, has, State)
