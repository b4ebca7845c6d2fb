// Intel Multi-Buffer Crypto for IPsec: AES-GCM by pieces, and CBC encryption of many
// buffers at once, which one buffer alone cannot have: each of its blocks waits for the one before.
#include <intel-ipsec-mb.h>

#include <algorithm>
#include <memory>

#include "aead/plugins/hardware_aes.hpp"
#include "base/constant_time.hpp"
#include "provider/message_calls.hpp"
#include "provider/plugins/keys.hpp"

namespace {

using namespace mpisec::provider;

IMB_MGR* new_manager() {
    IMB_MGR* made = alloc_mb_mgr(0);
    IMB_ARCH arch = IMB_ARCH_NONE;
    if (made) init_mb_mgr_auto(made, &arch);
    if (made && (imb_get_errno(made) != 0 || arch < IMB_ARCH_SSE)) {
        free_mb_mgr(made);
        return nullptr;
    }
    return made;
}

// The manager is a table of the functions that suit this CPU; the calls by pieces keep their state elsewhere.
IMB_MGR* manager() {
    static IMB_MGR* const made = new_manager();
    return made;
}

// Bursts keep theirs in the manager, so a thread that makes some has its own.
IMB_MGR* own_manager() {
    struct Free {
        void operator()(IMB_MGR* one) const { free_mb_mgr(one); }
    };
    static thread_local const std::unique_ptr<IMB_MGR, Free> made(new_manager());
    return made.get();
}

const char* version() {
    return imb_get_version_str();
}

int has(int mode, std::size_t key_n) {
    if (!mpisec::aead::plugins::hardware_aes() || !manager()) return 0;
    if (mode == mpisec_chacha) return key_n == 32;
    return (mode == mpisec_gcm || mode == mpisec_cbc) && (key_n == 16 || key_n == 24 || key_n == 32);
}

class Gcm {
  public:
    Gcm(const std::uint8_t* key, std::size_t key_n) {
        IMB_MGR* mgr = manager();
        const auto table = [this](auto pre, auto init, auto seal, auto open, auto sealed, auto opened) {
            init_ = init, seal_ = seal, open_ = open, sealed_ = sealed, opened_ = opened;
            return pre;
        };
        aes_gcm_pre_t pre = nullptr;
        if (key_n == 16)
            pre = table(mgr->gcm128_pre, mgr->gcm128_init_var_iv, mgr->gcm128_enc_update,
                        mgr->gcm128_dec_update, mgr->gcm128_enc_finalize, mgr->gcm128_dec_finalize);
        else if (key_n == 24)
            pre = table(mgr->gcm192_pre, mgr->gcm192_init_var_iv, mgr->gcm192_enc_update,
                        mgr->gcm192_dec_update, mgr->gcm192_enc_finalize, mgr->gcm192_dec_finalize);
        else
            pre = table(mgr->gcm256_pre, mgr->gcm256_init_var_iv, mgr->gcm256_enc_update,
                        mgr->gcm256_dec_update, mgr->gcm256_enc_finalize, mgr->gcm256_dec_finalize);
        ready = pre && init_ && seal_ && open_ && sealed_ && opened_;
        if (ready) pre(key, &key_);
    }
    ~Gcm() {
        explicit_bzero(&key_, sizeof key_);
        explicit_bzero(&message_, sizeof message_);
    }

    void start(const std::uint8_t* iv, std::size_t iv_n, const std::uint8_t* ad, std::size_t ad_n) {
        init_(&key_, &message_, iv, iv_n, ad, ad_n);
    }
    void update(bool encrypt, std::uint8_t* to, const std::uint8_t* from, std::size_t n) {
        (encrypt ? seal_ : open_)(&key_, &message_, to, from, n);
    }
    void finish(bool encrypt, std::uint8_t* tag) { (encrypt ? sealed_ : opened_)(&key_, &message_, tag, 16); }

    bool ready = false;

  private:
    aes_gcm_init_var_iv_t init_ = nullptr;
    aes_gcm_enc_dec_update_t seal_ = nullptr, open_ = nullptr;
    aes_gcm_enc_dec_finalize_t sealed_ = nullptr, opened_ = nullptr;
    alignas(64) gcm_key_data key_;
    alignas(64) gcm_context_data message_{};
};

class Chacha {
  public:
    explicit Chacha(const std::uint8_t* key) : ready(true) { std::memcpy(key_, key, sizeof key_); }
    ~Chacha() {
        explicit_bzero(key_, sizeof key_);
        explicit_bzero(&message_, sizeof message_);
    }

    void start(const std::uint8_t* iv, const std::uint8_t* ad, std::size_t ad_n) {
        IMB_CHACHA20_POLY1305_INIT(manager(), key_, &message_, iv, ad, ad_n);
    }
    void update(bool encrypt, std::uint8_t* to, const std::uint8_t* from, std::size_t n) {
        if (encrypt)
            IMB_CHACHA20_POLY1305_ENC_UPDATE(manager(), key_, &message_, to, from, n);
        else
            IMB_CHACHA20_POLY1305_DEC_UPDATE(manager(), key_, &message_, to, from, n);
    }
    void finish(bool encrypt, std::uint8_t* tag) {
        // NOLINTNEXTLINE(bugprone-branch-clone): one function in some versions of the library
        if (encrypt)
            IMB_CHACHA20_POLY1305_ENC_FINALIZE(manager(), &message_, tag, 16);
        else
            IMB_CHACHA20_POLY1305_DEC_FINALIZE(manager(), &message_, tag, 16);
    }

    bool ready = false;

  private:
    std::uint8_t key_[32];
    alignas(64) chacha20_poly1305_context_data message_{};
};

/// A key for encrypt_many.
class Cbc {
  public:
    Cbc(const std::uint8_t* key, std::size_t bytes) : key_n(bytes) {
        IMB_MGR* mgr = manager();
        const auto expand = bytes == 16 ? mgr->keyexp_128 : bytes == 24 ? mgr->keyexp_192 : mgr->keyexp_256;
        expand(key, schedule, for_decryption_);
        ready = true;
    }
    ~Cbc() {
        explicit_bzero(schedule, sizeof schedule);
        explicit_bzero(for_decryption_, sizeof for_decryption_);
    }

    bool ready = false;
    std::size_t key_n;
    alignas(16) std::uint8_t schedule[15 * 16];

  private:
    alignas(16) std::uint8_t for_decryption_[15 * 16];
};

/// A key of GHASH; its mode is none of EVP's.
class Ghash {
  public:
    explicit Ghash(const std::uint8_t* h) : ready(manager()->ghash_pre && manager()->ghash) {
        if (ready) manager()->ghash_pre(h, &key_);
    }
    ~Ghash() { explicit_bzero(&key_, sizeof key_); }
    void hash(std::uint8_t* state, const std::uint8_t* blocks, std::size_t n) const {
        manager()->ghash(&key_, blocks, n, state, 16);
    }

    bool ready = false;

  private:
    alignas(64) gcm_key_data key_;
};

/// Whichever of them a key is: they share slots, which are as large as the largest.
struct Key {
    Key(int which, const std::uint8_t* key, std::size_t key_n) : mode(which) {
        if (!has(mode, key_n)) return;
        if (mode == mpisec_gcm) ready = (new (&gcm) Gcm(key, key_n))->ready;
        if (mode == mpisec_chacha) ready = (new (&chacha) Chacha(key))->ready;
        if (mode == mpisec_cbc) ready = (new (&cbc) Cbc(key, key_n))->ready;
    }
    explicit Key(const std::uint8_t* h) { ready = (new (&ghash) Ghash(h))->ready; }
    explicit Key(const Key* other) {
        // NOLINTNEXTLINE(bugprone-undefined-memory-manipulation): plain bytes, but for the destructor, which wipes them
        std::memcpy(static_cast<void*>(this), other, sizeof *this);
    }
    ~Key() { explicit_bzero(static_cast<void*>(this), sizeof *this); }

    bool start(const std::uint8_t* iv, std::size_t iv_n, const std::uint8_t* ad, std::size_t ad_n) {
        static constexpr std::uint8_t nothing[16] = {};
        if (mode == mpisec_chacha)
            chacha.start(iv, ad ? ad : nothing, ad_n);
        else
            gcm.start(iv, iv_n, ad ? ad : nothing, ad_n);
        return true;
    }
    bool update(bool encrypt, std::uint8_t* to, const std::uint8_t* from, std::size_t n) {
        if (mode == mpisec_chacha)
            chacha.update(encrypt, to, from, n);
        else
            gcm.update(encrypt, to, from, n);
        return true;
    }
    bool finish(bool encrypt, std::uint8_t* tag, std::size_t tag_n) {
        std::uint8_t computed[16];
        if (mode == mpisec_chacha)
            chacha.finish(encrypt, computed);
        else
            gcm.finish(encrypt, computed);
        if (!encrypt) return mpisec::is_right_tag(computed, tag, tag_n);
        std::memcpy(tag, computed, sizeof computed);
        return true;
    }

    bool ready = false;
    int mode = 0;
    union {
        Gcm gcm;
        Chacha chacha;
        Ghash ghash;
        Cbc cbc;
    };
};

void* key_new(int mode, const std::uint8_t* key, std::size_t key_n, int) {
    return make<Key>(mode, key, key_n);
}

void* copy(const void* key) {
    return make<Key>(static_cast<const Key*>(key));
}

void* ghash_new(const std::uint8_t* h) {
    return make<Key>(h);
}

int ghash(void* key, std::uint8_t* state, const std::uint8_t* blocks, std::size_t n) {
    static_cast<const Key*>(key)->ghash.hash(state, blocks, n);
    return 0;
}

constexpr std::size_t most_buffers = 128;

/// `n` bytes from `begin` on of every buffer that has as many, or what it has of them.
bool encrypt_part(IMB_MGR* mgr, mpisec_cipher_buffer* buffers, std::size_t count, std::size_t begin,
                  std::size_t n) {
    static thread_local IMB_JOB jobs[most_buffers];
    std::uint32_t wanted = 0;
    const auto part = [=](const mpisec_cipher_buffer& buffer) {
        return buffer.n > begin ? std::min(n, buffer.n - begin) : std::size_t{0};
    };
    for (std::size_t i = 0; i < count; ++i) {
        if (part(buffers[i]) == 0) continue;
        const Cbc& key = static_cast<const Key*>(buffers[i].key)->cbc;
        IMB_JOB& job = jobs[wanted++];
        std::memset(&job, 0, sizeof job);
        job.enc_keys = job.dec_keys = key.schedule;
        job.src = buffers[i].from + begin;
        job.dst = buffers[i].to + begin;
        job.iv = buffers[i].iv;
        job.iv_len_in_bytes = 16;
        job.msg_len_to_cipher_in_bytes = part(buffers[i]);
    }
    const auto key_n = static_cast<IMB_KEY_SIZE_BYTES>(static_cast<const Key*>(buffers[0].key)->cbc.key_n);
    if (IMB_SUBMIT_CIPHER_BURST(mgr, jobs, wanted, IMB_CIPHER_CBC, IMB_DIR_ENCRYPT, key_n) != wanted)
        return false;
    for (std::size_t i = 0; i < count; ++i)
        if (const std::size_t done = part(buffers[i]); done > 0)
            std::memcpy(buffers[i].iv, buffers[i].to + begin + done - 16, 16);
    return true;
}

// With fewer lanes than the CPU has, the empty ones take as long as full ones.
int encrypt_many(mpisec_cipher_buffer* buffers, std::size_t count) {
    constexpr std::size_t longest = 65520;  // lanes count their bytes in 16 bits
    IMB_MGR* mgr = own_manager();
    if (!mgr || count > most_buffers) return -1;
    std::size_t end = 0;
    for (std::size_t i = 0; i < count; ++i) end = std::max(end, buffers[i].n);
    for (std::size_t begin = 0; begin < end; begin += longest)
        if (!encrypt_part(mgr, buffers, count, begin, longest)) return -1;
    return 0;
}

}  // namespace

MPISEC_CIPHER_PLUGIN_TABLE = {MPISEC_CIPHER_PLUGIN_VERSION,
                              "ipsec-mb",
                              version,
                              has_with_room<has, Key>,
                              key_new,
                              key_free<Key>,
                              nullptr,
                              MessageCalls<Key>::start,
                              nullptr,
                              MessageCalls<Key>::update,
                              MessageCalls<Key>::finish,
                              copy,
                              encrypt_many,
                              ghash_new,
                              ghash};
