// Intel Multi-Buffer Crypto for IPsec, through its direct (job-free) calls. It only computes tags: opening
// compares here.
#include <intel-ipsec-mb.h>

#include "aead/plugins/constant_time.hpp"
#include "aead/plugins/hardware_aes.hpp"
#include "aead/plugins/plugin.hpp"
#include "base/startup_pages.hpp"

namespace {

using namespace mpisec::aead;

// The manager is a table of the functions that suit this CPU; the calls used here keep their state elsewhere.
IMB_MGR* manager() {
    static IMB_MGR* const made = [] {
        IMB_MGR* mgr = alloc_mb_mgr(0);
        IMB_ARCH arch = IMB_ARCH_NONE;
        if (mgr) init_mb_mgr_auto(mgr, &arch);
        mpisec::release_startup_pages();  // it has tested every algorithm of its 12 MB
        bool usable = mgr && imb_get_errno(mgr) == 0 && arch >= IMB_ARCH_SSE;
        if (mgr && !usable) free_mb_mgr(mgr);
        return usable ? mgr : nullptr;
    }();
    return made;
}

int has(int cipher) {
    switch (static_cast<Cipher>(cipher)) {
        case Cipher::aes_128_gcm:
        case Cipher::aes_256_gcm:
        case Cipher::chacha20_poly1305:
            return plugins::hardware_aes() && manager();
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
        IMB_MGR* mgr = manager();
        if (cipher == Cipher::aes_128_gcm) {
            IMB_AES128_GCM_PRE(mgr, key, &gcm_key_);
            gcm_seal_ = mgr->gcm128_enc;
            gcm_open_ = mgr->gcm128_dec;
        }
        if (cipher == Cipher::aes_256_gcm) {
            IMB_AES256_GCM_PRE(mgr, key, &gcm_key_);
            gcm_seal_ = mgr->gcm256_enc;
            gcm_open_ = mgr->gcm256_dec;
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
            IMB_MGR* mgr = manager();
            IMB_CHACHA20_POLY1305_INIT(mgr, chacha_key_, &chacha_, nonce, ad, ad_n);
            IMB_CHACHA20_POLY1305_ENC_UPDATE(mgr, chacha_key_, &chacha_, to, from, n);
            IMB_CHACHA20_POLY1305_ENC_FINALIZE(mgr, &chacha_, to + n, tag_bytes);
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
            IMB_MGR* mgr = manager();
            IMB_CHACHA20_POLY1305_INIT(mgr, chacha_key_, &chacha_, nonce, ad, ad_n);
            IMB_CHACHA20_POLY1305_DEC_UPDATE(mgr, chacha_key_, &chacha_, to, from, n);
            IMB_CHACHA20_POLY1305_DEC_FINALIZE(mgr, &chacha_, expected, tag_bytes);
        } else {
            return false;
        }
        return plugins::equal_tags(expected, from + n);
    }

    bool ready;

  private:
    Cipher cipher_;  // no cipher has the value 0, which fork() leaves in a child
    aes_gcm_enc_dec_t gcm_seal_ = nullptr, gcm_open_ = nullptr;  // of AES-GCM
    alignas(64) gcm_key_data gcm_key_;
    alignas(64) gcm_context_data gcm_;
    alignas(64) chacha20_poly1305_context_data chacha_;
    std::uint8_t chacha_key_[32];
};

}  // namespace

MPISEC_AEAD_PLUGIN("ipsec-mb", version, has, State)
