// Little-endian loads and stores: the byte order of everything MPIsec puts on the wire (docs/protocol.md).
#pragma once

#include <cstdint>
#include <cstring>

namespace mpisec {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "MPIsec's wire format is written for little-endian hosts");

template <class Integer>
inline void store_le(std::uint8_t* to, Integer value) {
    std::memcpy(to, &value, sizeof value);
}

template <class Integer>
inline Integer load_le(const std::uint8_t* from) {
    Integer value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

}  // namespace mpisec
