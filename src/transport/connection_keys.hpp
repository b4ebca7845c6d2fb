// Keys of one connection between two processes that have the same key file (docs/protocol.md, "Connections of the MPI library").
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "aead/aead.hpp"
#include "base/error.hpp"
#include "keys/secret.hpp"

namespace mpisec::transport {

/// Each side sends one, ahead of its first record.
inline constexpr std::size_t nonce_bytes = 24;
using Nonce = std::array<std::uint8_t, nonce_bytes>;

/// Where the connection leads, as both sides see it: an address (IPv4 as IPv6 maps it, RFC 4291 section 2.5.5.2) and a port in
/// network order.
using Destination = std::array<std::uint8_t, 18>;

/// Which records a key is for.
enum class Use : std::uint8_t {
    client_early,  ///< from the side that connects, before it has the other's nonce
    client,        ///< from the side that connects
    server,        ///< from the side that accepts
};

inline constexpr aead::Cipher cipher = aead::Cipher::aes_256_gcm;

/// What the keys of all connections of a process are derived from, so that the long-term key need not stay in memory:
/// HKDF-Expand(long-term key, "mpisec v1 connections", 32) (RFC 5869).
keys::Secret connection_secret(const keys::Secret& long_term);

/// The key that follows from the nonces of both sides, client first (for client_early: from the client's alone):
/// HKDF-Expand(connection secret, label | 0 | destination | nonces, 32).
Result<aead::Key> connection_key(const aead::Library& library, const keys::Secret& secret, Use use,
                                 const Destination& destination, std::span<const std::uint8_t> nonces);

}  // namespace mpisec::transport
