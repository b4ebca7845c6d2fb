// The key schedule (design.md 2.3): everything is HKDF-SHA256 (RFC 5869) from the job's master secret, with a
// label.
#pragma once

#include <cstdint>

#include "keys/secret.hpp"

namespace mpisec::keys {

/// What one sender and one receiver share in one epoch.
struct PairSecret {
    Secret aead;     ///< key_bytes of it key the pair's AEAD
    Secret message;  ///< derives the keys of large messages
};

/// The secret of the messages that world rank `source` sends to world rank `destination` in `epoch`.
PairSecret pair_secret(const Secret& master, std::int32_t source, std::int32_t destination,
                       std::uint32_t epoch);

/// The key of the large message that carried `counter`: 32 bytes to `out`, of which the cipher takes the
/// first key_bytes.
void message_key(const Secret& message_secret, std::uint64_t counter, std::uint8_t* out);

}  // namespace mpisec::keys
