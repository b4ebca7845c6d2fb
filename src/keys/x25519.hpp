// X25519 (RFC 7748) from libsodium: the DH functions of Noise section 12.1.
#pragma once

#include <array>
#include <cstdint>

#include "base/error.hpp"
#include "keys/secret.hpp"

namespace mpisec::keys {

using PublicKey = std::array<std::uint8_t, 32>;

struct KeyPair {
    Secret secret;
    PublicKey public_key{};
};

KeyPair x25519_key_pair(Secret secret);

/// Fails when the result is all zero: the peer sent a point of low order (RFC 7748 section 6.1).
Result<Secret> x25519(const KeyPair& ours, const PublicKey& theirs);

/// Lets libsodium examine the processor, once; must be called before libsodium is used.
void initialize_sodium();

}  // namespace mpisec::keys
