// How fast the chosen library seals long messages, which decides how they are cut (docs/adr/0019-few-segments-for-fast-ciphers.md).
#pragma once

#include "aead/aead.hpp"

namespace mpisec::aead {

/// The speed of a cipher, in one library on one machine.
enum class Speed : std::uint8_t {
    slow,
    medium,  ///< 4 GB/s or more: AES-GCM with wide instructions, though not AVX-512
    fast,    ///< 10 GB/s or more: AES-GCM with AVX-512, AEGIS
};

constexpr Speed speed_of(double bytes_per_second) {
    return bytes_per_second >= 10e9 ? Speed::fast : bytes_per_second >= 4e9 ? Speed::medium : Speed::slow;
}

/// How fast `selection` seals 64 KiB, in the best of five tries, or of as many more as fit into 0.2 ms (processors need some time until
/// wide instructions run at full speed). Stops as soon as a try was fast.
Speed speed_of(const Selection& selection);

}  // namespace mpisec::aead
