// How fast the chosen library seals long messages: what decides how they are cut (docs/adr/0019-few-segments-for-fast-ciphers.md).
#pragma once

#include "aead/aead.hpp"

namespace mpisec::aead {

/// Bytes per second from which on a cipher is a fast one.
inline constexpr double fast_cipher_bytes_per_second = 10e9;

/// Whether `selection` seals 64 KiB as fast as that in at least one of five tries, or of those that 0.2 ms are enough for (processors
/// take their time until wide instructions have their full speed): AES-GCM with AVX-512 and AEGIS do.
bool is_fast(const Selection& selection);

}  // namespace mpisec::aead
