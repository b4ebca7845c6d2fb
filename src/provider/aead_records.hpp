// The records of TLS 1.2 under AES-GCM (RFC 5288) and ChaCha20-Poly1305 (RFC 7905), as libssl has them sealed and opened.
#pragma once

#include "provider/aead_message.hpp"

namespace mpisec::provider {

/// A record's associated data.
bool take_tls_ad(AeadMessage& aead, const OSSL_PARAM& given);
/// The connection's part of the vector.
bool take_fixed(AeadMessage& aead, const OSSL_PARAM& given);

/// In place: 8 bytes of vector, the text, 16 bytes of tag. 1, or 0 for one that cannot be sealed or does not open.
int gcm_record(AeadMessage& aead, std::uint8_t* out, std::size_t* out_n, const std::uint8_t* in,
               std::size_t n);
int chacha_record(AeadMessage& aead, std::uint8_t* out, std::size_t* out_n, const std::uint8_t* in,
                  std::size_t n);

}  // namespace mpisec::provider
