// Comparison of secrets, and of tags that an attacker must not find out byte by byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace mpisec {

/// Whether n bytes are equal, in a time that does not depend on them.
inline bool equal_in_constant_time(const std::uint8_t* left, const std::uint8_t* right, std::size_t n) {
    std::uint64_t different = 0, words[2];
    for (; n >= sizeof words[0]; n -= sizeof words[0]) {
        std::memcpy(&words[0], left, sizeof words[0]);
        std::memcpy(&words[1], right, sizeof words[1]);
        different |= words[0] ^ words[1];
        // The compiler does not know the value: it cannot stop at the first difference.
        asm("" : "+r"(different));
        left += sizeof words[0];
        right += sizeof words[0];
    }
    for (; n > 0; --n) {
        different |= static_cast<std::uint64_t>(*left++ ^ *right++);
        asm("" : "+r"(different));
    }
    return different == 0;
}

/// Whether the tag that was received, of n bytes, is the beginning of the one that was computed. `computed` is wiped: for a forgery it is the tag that
/// would have been right.
inline bool is_right_tag(std::uint8_t (&computed)[16], const std::uint8_t* received, std::size_t n = 16) {
    const bool right = n > 0 && n <= sizeof computed && equal_in_constant_time(computed, received, n);
    std::memset(computed, 0, sizeof computed);
    asm("" : : "r"(computed) : "memory");  // the compiler may not leave the wiping out
    return right;
}

}  // namespace mpisec
