// Tag comparison for libraries that compute a tag on opening but leave the comparison to their caller.
#pragma once

#include <cstdint>
#include <cstring>

#include "aead/aead.hpp"

namespace mpisec::aead::plugins {

/// True when the tags are equal, in a time that does not depend on their bytes.
inline bool equal_tags(const std::uint8_t* a, const std::uint8_t* b) {
    static_assert(tag_bytes == 16);
    std::uint64_t left[2], right[2];
    std::memcpy(left, a, sizeof left);
    std::memcpy(right, b, sizeof right);
    std::uint64_t first = left[0] ^ right[0], second = left[1] ^ right[1];
    // The compiler knows neither value here, so that it can not look at the second only if the first is zero.
    asm("" : "+r"(first), "+r"(second));
    return (first | second) == 0;
}

}  // namespace mpisec::aead::plugins
