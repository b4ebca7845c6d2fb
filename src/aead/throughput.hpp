// How fast the chosen library seals long messages: what decides how they are cut (docs/adr/0019-few-segments-for-fast-ciphers.md).
#pragma once

#include "aead/aead.hpp"

namespace mpisec::aead {

/// Whether `selection` seals 64 KiB at 10 GB/s or more, by the best of five times: AES-GCM with AVX-512 and AEGIS do. Takes 20
/// to 200 µs.
bool is_fast(const Selection& selection);

}  // namespace mpisec::aead
