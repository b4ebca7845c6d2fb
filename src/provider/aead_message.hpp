// One context of AES-GCM or ChaCha20-Poly1305: its vector, and the message under way in the library that serves it.
#pragma once

#include <openssl/evp.h>

#include <cstddef>
#include <cstdint>

#include "provider/keyring.hpp"
#include "provider/parameters.hpp"

namespace mpisec::provider {

inline constexpr std::size_t tag_bytes = 16, max_iv_bytes = 128, chacha_iv_bytes = 12;
// TLS 1.2 (RFC 5288): 4 bytes of the vector are the connection's, 8 travel in front of each record.
inline constexpr std::size_t tls_fixed_bytes = 4, tls_explicit_bytes = 8, tls_ad_bytes = 13;
/// Of a vector that counts, the last bytes are the counter: all, when there are fewer.
inline constexpr std::size_t counter_bytes = tls_explicit_bytes;

struct AeadMessage {
    static constexpr std::size_t none = static_cast<std::size_t>(-1), kept_ad_bytes = 256;
    enum class Vector { missing, given, used, finished };

    AeadMessage(const Instance* of, const Traits* algorithm)
        : instance(of), traits(algorithm), keys(algorithm->mode, algorithm->key_n) {}
    AeadMessage(const AeadMessage&) = default;
    ~AeadMessage() { EVP_CIPHER_CTX_free(tls); }

    bool chacha() const { return traits->mode == mpisec_chacha; }

    /// False when a message can neither go on nor begin.
    bool ready();
    /// A message begins, under the vector as it is.
    void begin();
    bool associate(const std::uint8_t* ad, std::size_t n);
    bool text(std::uint8_t* to, const std::uint8_t* from, std::size_t n);
    bool finish(std::uint8_t* to_or_from, std::size_t n);  ///< the tag

    /// A vector of another length is not the one that counted.
    void set_vector_length(std::size_t n);
    /// The vector, chosen anew by the caller, is where the counter begins.
    void set_counter();
    /// Begins a message under the vector, whose last n bytes go to `out`; then the counter is increased. False when the counter has no value left
    /// under which no message was begun.
    bool begin_under_next_vector(std::uint8_t* out, std::size_t n);
    /// Begins one under a vector whose last n bytes are the peer's.
    bool begin_under_peers_vector(const std::uint8_t* in, std::size_t n);

    const Instance* instance;
    const Traits* traits;
    bool encrypt = false;
    Vector state = Vector::missing;
    bool counts = false;        ///< the vector's last part is a counter, begun by TLS
    std::uint64_t counted = 0;  ///< vectors taken from the counter since it was begun
    std::size_t iv_n = 12, tag_n = none, tls_ad_n = none;
    std::uint64_t records = 0;
    std::uint8_t iv[max_iv_bytes] = {}, tag[tag_bytes] = {}, tls_ad[tls_ad_bytes] = {};
    std::uint8_t message_iv[max_iv_bytes] = {};  ///< of the message under way, when `iv` counts on
    /// The library is chosen by the first piece of the message, until which associated data waits here.
    std::size_t library = none;
    bool text_begun = false;
    std::uint64_t text_n = 0;
    std::size_t ad_n = 0;
    std::uint8_t ad[kept_ad_bytes] = {};
    /// Of ChaCha20-Poly1305: records of TLS 1.2, whose numbers OpenSSL adds to the vector.
    EVP_CIPHER_CTX* tls = nullptr;
    Keyring keys;

  private:
    mpisec_cipher_plugin const& table() const { return *libraries()[library]; }
    /// The state of the message in the library that serves it.
    void* of_library() { return keys.get(library, encrypt); }
    bool begin_in(std::size_t chosen);
    std::size_t library_for_much_data() const;
    std::size_t library_for_text(std::size_t n) const;
    std::uint64_t longest_text() const;
    bool random_vector();
    bool counter_used_up() const;
};

}  // namespace mpisec::provider
