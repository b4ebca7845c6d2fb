// AES-GCM whose counter mode and GHASH run on several threads, made of what two libraries offer: CTR of one, GHASH of the
// other. Parts are hashed from zero and put together by powers of the hash's key; nothing is calculated here.
#include <string.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <new>
#include <vector>

#include "base/constant_time.hpp"
#include "base/locked_slab.hpp"
#include "provider/choice.hpp"
#include "provider/libraries.hpp"
#include "provider/message_calls.hpp"
#include "provider/workers.hpp"

namespace mpisec::provider {
namespace shared_gcm {
namespace {

constexpr std::size_t block = 16;
constexpr std::uint64_t most_text = (std::uint64_t{1} << 36) - 32;  // SP 800-38D, 5.2.1.1
static_assert(part_bytes % block == 0 && (part_bytes / block & (part_bytes / block - 1)) == 0);

/// The library whose CTR is best for parts, and that has GHASH; null where there is none.
const mpisec_cipher_plugin* ctr_library(std::size_t key_n) {
    const mpisec_cipher_plugin* found =
        libraries()[choices().at({mpisec_ctr, key_n}).library[1][size_classes - 1]];
    return found == libraries()[openssl_index()] ? nullptr : found;
}

const mpisec_cipher_plugin* ghash_library() {
    for (const mpisec_cipher_plugin* one : libraries())
        if (one->ghash && one->has(mpisec_gcm, 16)) return one;
    return nullptr;
}

class Message {
  public:
    Message(const std::uint8_t* key, std::size_t key_n) : key_n_(key_n) {
        std::memcpy(key_, key, key_n);
        make_keys();
    }
    Message(const Message& other) = delete;
    ~Message() {
        if (ctr_key_) ctr_->key_free(ctr_key_);
        if (hash_key_) ghash_->key_free(hash_key_);
        if (part_key_) ghash_->key_free(part_key_);
        explicit_bzero(static_cast<void*>(this), sizeof *this);
    }
    bool ready() const { return ctr_key_ && hash_key_ && part_key_; }

    bool start(const std::uint8_t* iv, std::size_t iv_n, const std::uint8_t* ad, std::size_t ad_n) {
        if (iv_n != 12) return false;
        state_ = {};
        std::memcpy(state_.counter, iv, 12);
        state_.counter[15] = 1;
        state_.ad_n = ad_n;
        return next_keystream(state_.of_tag) && hash_padded(ad, ad_n);
    }

    bool update(bool encrypt, std::uint8_t* to, const std::uint8_t* from, std::size_t n) {
        if (n > most_text - state_.text_n) return false;
        const std::size_t begun = state_.text_n % block;
        state_.text_n += n;
        if (begun > 0) {
            const std::size_t now = std::min(n, block - begun);
            bytes(encrypt, begun, to, from, now);
            to += now, from += now, n -= now;
            if (begun + now < block) return true;
            if (!hash(state_.text, block)) return false;
        }
        const std::size_t whole = n / block * block;
        try {
            if (whole > 0 && !blocks(encrypt, to, from, whole)) return false;
        } catch (const std::bad_alloc&) {
            return false;
        }
        if (n == whole) return true;
        if (!next_keystream(state_.keystream)) return false;
        bytes(encrypt, 0, to + whole, from + whole, n - whole);
        return true;
    }

    bool finish(bool encrypt, std::uint8_t* tag, std::size_t tag_n) {
        std::uint8_t computed[block] = {};
        if (tag_n == 0 || tag_n > block || !calculate(computed)) return false;
        if (!encrypt) return is_right_tag(computed, tag, tag_n);
        std::memcpy(tag, computed, block);
        return true;
    }

    Message* copied(void* slot) const {
        auto* made = new (slot) Message(key_, key_n_);
        made->state_ = state_;
        return made;
    }

  private:
    using Block = std::array<std::uint8_t, block>;

    bool calculate(std::uint8_t* tag) {
        const std::size_t begun = state_.text_n % block;
        if (begun > 0 && !hash_padded(state_.text, begun)) return false;
        std::uint8_t lengths[block];
        for (std::size_t i = 0; i < 8; ++i) {
            lengths[i] = static_cast<std::uint8_t>(state_.ad_n * 8 >> (56 - 8 * i));
            lengths[8 + i] = static_cast<std::uint8_t>(state_.text_n * 8 >> (56 - 8 * i));
        }
        if (!hash(lengths, block)) return false;
        for (std::size_t i = 0; i < block; ++i)
            tag[i] = static_cast<std::uint8_t>(state_.hash[i] ^ state_.of_tag[i]);
        return true;
    }

    struct State {
        std::uint8_t counter[block] = {}, hash[block] = {};
        std::uint8_t of_tag[block] = {};     ///< the first block's keystream, which hides the hash
        std::uint8_t keystream[block] = {};  ///< of the block that is begun
        std::uint8_t text[block] = {};       ///< its ciphertext
        std::uint64_t ad_n = 0, text_n = 0;
    };

    void make_keys() {
        if (!ctr_ || !ghash_) return;
        ctr_key_ = ctr_->key_new(mpisec_ctr, key_, key_n_, 1);
        std::uint8_t zero[block] = {}, power[block] = {};
        if (!ctr_key_ || ctr_->crypt(ctr_key_, 1, power, power, block, zero) != 0) return;
        hash_key_ = ghash_->ghash_new(power);
        // The power that a part's number of blocks makes, by squaring.
        void* square = ghash_->ghash_new(power);
        for (std::size_t blocks = 1; square && blocks < part_bytes / block; blocks *= 2) {
            static constexpr std::uint8_t nothing[block] = {};
            const bool good = ghash_->ghash(square, power, nothing, block) == 0;
            ghash_->key_free(square);
            square = good ? ghash_->ghash_new(power) : nullptr;
        }
        part_key_ = square;
        explicit_bzero(power, sizeof power);
    }

    bool hash(const std::uint8_t* from, std::size_t n) {
        return ghash_->ghash(hash_key_, state_.hash, from, n) == 0;
    }
    bool hash_padded(const std::uint8_t* from, std::size_t n) {
        const std::size_t whole = n / block * block;
        if (whole > 0 && !hash(from, whole)) return false;
        if (n == whole) return true;
        std::uint8_t last[block] = {};
        std::memcpy(last, from + whole, n - whole);
        return hash(last, block);
    }
    bool next_keystream(std::uint8_t* to) {
        std::memset(to, 0, block);
        return ctr_->crypt(ctr_key_, 1, to, to, block, state_.counter) == 0;
    }
    void bytes(bool encrypt, std::size_t at, std::uint8_t* to, const std::uint8_t* from, std::size_t n) {
        for (std::size_t i = 0; i < n; ++i) {
            const std::uint8_t in = from[i];
            to[i] = static_cast<std::uint8_t>(in ^ state_.keystream[at + i]);
            state_.text[at + i] = encrypt ? to[i] : in;
        }
    }

    /// Encrypts or decrypts one part, and hashes its ciphertext on.
    bool part(bool encrypt, std::uint8_t* to, const std::uint8_t* from, std::size_t n, std::uint8_t* counter,
              std::uint8_t* hash) const {
        if (!encrypt && ghash_->ghash(hash_key_, hash, from, n) != 0) return false;
        if (ctr_->crypt(ctr_key_, 1, to, from, n, counter) != 0) return false;
        return !encrypt || ghash_->ghash(hash_key_, hash, to, n) == 0;
    }

    /// The first part is what does not fill one, and goes on from the hash so far; the others are alike.
    bool blocks(bool encrypt, std::uint8_t* to, const std::uint8_t* from, std::size_t n) {
        const std::size_t rest = n % part_bytes, first = rest ? rest : part_bytes;
        const std::size_t parts = 1 + (n - first) / part_bytes;
        std::vector<Block> counters(parts), hashes(parts);
        std::memcpy(hashes[0].data(), state_.hash, block);
        for (Block& counter : counters) {
            const std::size_t at = static_cast<std::size_t>(&counter - counters.data());
            std::memcpy(counter.data(), state_.counter, block);
            if (at > 0) add_blocks(counter.data(), (first + (at - 1) * part_bytes) / block);
        }
        std::atomic<bool> good{true};
        const auto work = [&](std::size_t i) {
            const std::size_t begin = i == 0 ? 0 : first + (i - 1) * part_bytes;
            if (!part(encrypt, to + begin, from + begin, i == 0 ? first : part_bytes, counters[i].data(),
                      hashes[i].data()))
                good = false;
        };
        if (n < shared_bytes || !on_threads(parts, work))
            for (std::size_t i = 0; i < parts; ++i) work(i);
        std::memcpy(state_.counter, counters.back().data(), block);
        Block all = hashes[0];
        for (std::size_t i = 1; i < parts; ++i) {
            static constexpr std::uint8_t nothing[block] = {};
            if (ghash_->ghash(part_key_, all.data(), nothing, block) != 0) return false;
            for (std::size_t j = 0; j < block; ++j) all[j] ^= hashes[i][j];
        }
        std::memcpy(state_.hash, all.data(), block);
        return good;
    }

    std::size_t key_n_;
    const mpisec_cipher_plugin *ctr_ = ctr_library(key_n_), *ghash_ = ghash_library();
    void *ctr_key_ = nullptr, *hash_key_ = nullptr, *part_key_ = nullptr;
    State state_;
    std::uint8_t key_[32] = {};
};

LockedSlab& slots() {
    static LockedSlab* const slab = [] {
        auto* made = new LockedSlab(sizeof(Message), LockedSlab::Fork::keep);
        made->reserve(64 * 1024);
        return made;
    }();
    return *slab;
}

void key_free(void* key) {
    if (!key) return;
    static_cast<Message*>(key)->~Message();
    slots().give_back(key);
}

void* if_ready(Message* made) {
    if (made->ready()) return made;
    key_free(made);
    return nullptr;
}

void* key_new(int mode, const std::uint8_t* key, std::size_t key_n, int) {
    void* slot = mode == mpisec_gcm ? slots().take() : nullptr;
    return slot ? if_ready(new (slot) Message(key, key_n)) : nullptr;
}

void* copy(const void* key) {
    void* slot = slots().take();
    return slot ? if_ready(static_cast<const Message*>(key)->copied(slot)) : nullptr;
}

// It is no contestant where one is chosen for its speed: it takes what is large enough for several threads.
int has(int, std::size_t) {
    return 0;
}

const char* version() {
    return "";
}

}  // namespace
}  // namespace shared_gcm

bool gcm_can_share(std::size_t key_n) {
    return has_threads() && shared_gcm::ghash_library() && shared_gcm::ctr_library(key_n);
}

const mpisec_cipher_plugin& shared_gcm_library() {
    using namespace shared_gcm;
    using Calls = MessageCalls<Message>;
    static constexpr mpisec_cipher_plugin table = {MPISEC_CIPHER_PLUGIN_VERSION,
                                                   "threads",
                                                   version,
                                                   has,
                                                   key_new,
                                                   key_free,
                                                   nullptr,
                                                   Calls::start,
                                                   nullptr,
                                                   Calls::update,
                                                   Calls::finish,
                                                   copy,
                                                   nullptr,
                                                   nullptr,
                                                   nullptr};
    if (has_threads()) slots();  // before a sandbox forbids to lock memory
    return table;
}

}  // namespace mpisec::provider
