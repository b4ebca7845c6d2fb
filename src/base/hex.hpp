// Bytes that are not secret, as hexadecimal digits, for names of files for example. (Not in constant time: key files have their own code.)
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace mpisec {

inline std::string hex(std::span<const std::uint8_t> bytes) {
    constexpr char digits[] = "0123456789abcdef";
    std::string text;
    for (std::uint8_t byte : bytes) text += {digits[byte >> 4], digits[byte & 15]};
    return text;
}

}  // namespace mpisec
