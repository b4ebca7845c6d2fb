// Noise's CipherState (revision 34, section 5.1) with ChaCha20-Poly1305 (section 12.2, RFC 8439), from
// libsodium: constant-time on every processor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/error.hpp"
#include "keys/hkdf.hpp"
#include "keys/secret.hpp"

namespace mpisec::keys::noise {

inline constexpr std::size_t tag_bytes = 16;
inline constexpr std::size_t max_message_bytes = 65535;  ///< section 3

class CipherState {
  public:
    CipherState() = default;  ///< no key: passes data through (InitializeKey(empty))
    explicit CipherState(Secret key) : key_(std::move(key)) {}

    bool has_key() const { return key_.has_value(); }
    std::size_t overhead() const { return has_key() ? tag_bytes : 0; }
    std::uint64_t nonce() const { return nonce_; }

    /// EncryptWithAd: writes plaintext.size() + overhead() bytes to `out`.
    Result<void> encrypt(Bytes ad, Bytes plaintext, std::uint8_t* out);
    /// DecryptWithAd: writes ciphertext.size() - overhead() bytes to `out`. When it fails `out` holds zeros
    /// and the nonce stays.
    Result<void> decrypt(Bytes ad, Bytes ciphertext, std::uint8_t* out);

  private:
    std::optional<Secret> key_;
    std::uint64_t nonce_ = 0;
};

}  // namespace mpisec::keys::noise
