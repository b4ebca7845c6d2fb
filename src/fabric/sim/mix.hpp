// Makes a number that looks random from a number, for schedules, tampering and the stand-in for a cipher.
#pragma once

#include <cstdint>

namespace mpisec::fabric::sim {

inline std::uint64_t mix(std::uint64_t x) {  // SplitMix64 (Steele, Lea, Flood 2014)
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

}  // namespace mpisec::fabric::sim
