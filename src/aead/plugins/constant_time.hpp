// Tag comparison for libraries that compute a tag on opening but leave the comparison to their caller.
#pragma once

#include <cstdint>
#include <cstring>

#include "aead/aead.hpp"

namespace mpisec::aead::plugins {

/// True when the tags are equal, in a time that does not depend on their bytes. `expected` is wiped: for a forgery it is the tag that would
/// have been right.
inline bool equal_tags(std::uint8_t (&expected)[tag_bytes], const std::uint8_t* received) {
    static_assert(tag_bytes == 16);
    std::uint64_t left[2], right[2];
    std::memcpy(left, expected, sizeof left);
    std::memcpy(right, received, sizeof right);
    std::memset(expected, 0, sizeof expected);
    asm("" : : "r"(expected) : "memory");  // the compiler may not leave the wiping out
    std::uint64_t first = left[0] ^ right[0], second = left[1] ^ right[1];
    // The compiler knows neither value here, so that it cannot look at the second only if the first is zero.
    asm("" : "+r"(first), "+r"(second));
    return (first | second) == 0;
}

}  // namespace mpisec::aead::plugins
