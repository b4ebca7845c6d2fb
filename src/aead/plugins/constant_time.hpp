// Tag comparison for libraries that compute a tag on opening but leave the comparison to their caller.
#pragma once

#include <cstdint>

#include "aead/aead.hpp"

namespace mpisec::aead::plugins {

/// True when the tags are equal, in a time that does not depend on their bytes.
inline bool equal_tags(const std::uint8_t* a, const std::uint8_t* b) {
    volatile std::uint8_t difference = 0;  // volatile: every byte is looked at, whatever came before
    for (std::size_t i = 0; i < tag_bytes; ++i) difference = difference | (a[i] ^ b[i]);
    return difference == 0;
}

}  // namespace mpisec::aead::plugins
