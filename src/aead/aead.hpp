// The one AEAD interface of MPIsec (RFC 5116): the rest of the tree sees nothing else of a crypto library.
//
// A crypto library is a plug-in, libmpisec-aead-NAME.so, opened with RTLD_LOCAL so that OpenSSL and BoringSSL can live in one process
// (docs/crypto-libraries.md). Setting up a key is separate from using it. All sizes are in bytes.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "aead/plugin.h"
#include "base/error.hpp"
#ifdef MPISEC_NONCE_LEDGER
#include "aead/nonce_ledger.hpp"
#endif

namespace mpisec::aead {

inline constexpr std::size_t nonce_bytes = 12;
inline constexpr std::size_t tag_bytes = 16;
inline constexpr std::size_t max_key_bytes = 32;

/// The ciphers; the values travel in the handshake's prologue and are never renumbered.
enum class Cipher : std::uint8_t {
    aes_128_gcm = 1,
    aes_256_gcm = 2,
    chacha20_poly1305 = 3,
    aegis_128l = 4,
    aegis_256 = 5,
    aegis_128x2 = 6,
    aegis_128x4 = 7,
};

struct CipherInfo {
    Cipher id;
    std::string_view name;  ///< as in MPISEC_AEAD, e.g. "aes-256-gcm"
    std::size_t key_bytes;
};

std::span<const CipherInfo> ciphers();
const CipherInfo& info(Cipher cipher);
std::optional<Cipher> cipher_by_name(std::string_view name);

/// A key that is set up for one library. Used by one thread at a time. Wiped when destroyed. Movable.
class Key {
  public:
    Key() = default;
    Key(const mpisec_aead_plugin* plugin, void* state)
        : state_(state), seal_(plugin->seal), open_(plugin->open), free_(plugin->key_free) {}
    Key(Key&& other) noexcept { *this = std::move(other); }
    Key& operator=(Key&& other) noexcept {
        std::swap(state_, other.state_);
        std::swap(seal_, other.seal_);
        std::swap(open_, other.open_);
        std::swap(free_, other.free_);
        return *this;
    }
    ~Key() {
        if (state_) free_(state_);
    }
    explicit operator bool() const { return state_ != nullptr; }

    /// Writes n + tag_bytes to `to`: ciphertext, then tag. `to` is `from` or does not overlap it.
    [[nodiscard]] bool seal(std::uint8_t* to, const std::uint8_t* from, std::size_t n,
                            const std::uint8_t* nonce, const std::uint8_t* ad,
                            std::size_t ad_n) const noexcept {
        return seal_(state_, to, from, n, nonce, ad, ad_n) == 0;
    }
    /// Reads n + tag_bytes from `from`, writes n bytes of plaintext to `to` (`to` is `from` or does not
    /// overlap it). Returns false when the tag is wrong; then `to` holds n zero bytes (S2).
    [[nodiscard]] bool open(std::uint8_t* to, const std::uint8_t* from, std::size_t n,
                            const std::uint8_t* nonce, const std::uint8_t* ad,
                            std::size_t ad_n) const noexcept {
        return open_(state_, to, from, n, nonce, ad, ad_n) == 0;
    }

  private:
    // The plug-in's functions are copied here: its table is in another cache line that a small message would have to wait for.
    void* state_ = nullptr;
    decltype(mpisec_aead_plugin::seal) seal_ = nullptr;
    decltype(mpisec_aead_plugin::open) open_ = nullptr;
    decltype(mpisec_aead_plugin::key_free) free_ = nullptr;
};

/// A loaded crypto library. Lives until the process ends.
class Library {
  public:
    explicit Library(const mpisec_aead_plugin* plugin);
    std::string_view name() const { return plugin_->name; }
    std::string version() const { return plugin_->version(); }
    bool has(Cipher cipher) const { return has_[static_cast<std::size_t>(cipher)]; }
    /// `bytes` holds info(cipher).key_bytes bytes. Fails when this library (or this CPU) lacks the cipher.
    Result<Key> make_key(Cipher cipher, const std::uint8_t* bytes) const;

  private:
    const mpisec_aead_plugin* plugin_;
    std::bitset<256> has_;  ///< by Cipher; a message may name any value
};

/// Directory of the plug-ins: MPISEC_PLUGIN_DIR, else "mpisec" beside the object that contains this code (installed: PREFIX/lib/mpisec),
/// found with dladdr so that an installation can be moved.
std::string plugin_directory();

/// Names of the plug-ins that exist, in the order of preference for small messages (no dlopen).
std::vector<std::string> available(const std::string& directory = plugin_directory());

/// Opens a plug-in; the error lists those that exist.
Result<const Library*> load(std::string_view name, const std::string& directory = plugin_directory());

/// Which library seals a message of which size. There are size classes because the library that is cheapest per call is rarely the fastest
/// per byte. small <= 1 KiB < medium <= 16 KiB < large.
inline constexpr std::array<std::size_t, 2> size_class_limits = {1024, 16384};
inline constexpr std::size_t size_classes = size_class_limits.size() + 1;
inline std::size_t size_class(std::size_t n) {
    return n <= size_class_limits[0] ? 0 : n <= size_class_limits[1] ? 1 : 2;
}

struct Selection {
    Cipher cipher = Cipher::aes_256_gcm;
    std::array<const Library*, size_classes> library{};
};

/// MPISEC_AEAD's value: "library:cipher", "library", "cipher" or "auto" (also "auto:cipher"). Where no library is pinned, the choice per
/// size class comes from the calibration remembered for this machine, else from a calibration that is made now (at most about 50 ms) and
/// remembered in `cache_file` (empty: not remembered).
Result<Selection> select(std::string_view setting, const std::string& cache_file);

/// A key for each size class, made on first use; size classes of one library share one key state.
class KeySet {
  public:
    KeySet() = default;
    KeySet(const Selection& selection, const std::uint8_t* key_bytes);
    KeySet(KeySet&&) = default;
    KeySet& operator=(KeySet&&) = default;
    ~KeySet();
    explicit operator bool() const { return selection_.library[0] != nullptr; }
    [[nodiscard]] bool seal(std::uint8_t* to, const std::uint8_t* from, std::size_t n,
                            const std::uint8_t* nonce, const std::uint8_t* ad, std::size_t ad_n) noexcept {
        const Key& key = key_for(n);
#ifdef MPISEC_NONCE_LEDGER
        if (key) record_nonce(fingerprint_, nonce);
#endif
        return key && key.seal(to, from, n, nonce, ad, ad_n);
    }
    [[nodiscard]] bool open(std::uint8_t* to, const std::uint8_t* from, std::size_t n,
                            const std::uint8_t* nonce, const std::uint8_t* ad, std::size_t ad_n) noexcept {
        const Key& key = key_for(n);
        return key && key.open(to, from, n, nonce, ad, ad_n);
    }

  private:
    const Key& key_for(std::size_t n) noexcept {
        const std::size_t wanted = size_class(n);
        const Key& key = keys_[key_of_class_[wanted]];
        return key ? key : make(wanted);
    }
    /// When there is no library for the class, or when making the key fails, the key is empty.
    const Key& make(std::size_t size_class) noexcept;

    std::array<Key, size_classes> keys_{};
    std::array<std::uint8_t, size_classes> key_of_class_{0, 1, 2};  ///< equal for classes of one library
    Selection selection_{};
#ifdef MPISEC_NONCE_LEDGER
    KeyFingerprint fingerprint_{};
#endif
    struct WipedSlot {
        void operator()(std::uint8_t* bytes) const;
    };
    /// In locked memory (S5): kept to set up further libraries.
    std::unique_ptr<std::uint8_t, WipedSlot> bytes_;
};

}  // namespace mpisec::aead
