// Keys of one connection between two processes that have the same key file (docs/protocol.md, "Connections of the MPI library").
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "aead/aead.hpp"
#include "base/error.hpp"
#include "keys/schedule.hpp"

namespace mpisec::transport {

/// Each side sends one, ahead of its first record.
inline constexpr std::size_t nonce_bytes = 24;
using Nonce = std::array<std::uint8_t, nonce_bytes>;

/// Where the connection leads, as both sides see it: an address (IPv4 as IPv6 maps it, RFC 4291 section 2.5.5.2) and a port in
/// network order.
using Destination = std::array<std::uint8_t, 18>;

inline constexpr aead::Cipher cipher = aead::Cipher::aes_256_gcm;

/// As keys::connection_key(), for `library`.
Result<aead::Key> connection_key(const aead::Library& library, const keys::Secret& secret,
                                 keys::ConnectionUse use, const Destination& destination,
                                 std::span<const std::uint8_t> nonces);

}  // namespace mpisec::transport
