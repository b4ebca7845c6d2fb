// The STREAM construction (Hoang, Reyhanitabar, Rogaway, Vizar, CRYPTO 2015) over a large message's segments:
// segment i is sealed under the message's own key with nonce (i, last?), so that segments can be neither swapped nor cut off.
#pragma once

#include <cstdint>

#include "wire/frame.hpp"

namespace mpisec::wire {

/// index(8) | last(1) | zero(3)
Nonce segment_nonce(std::uint64_t index, bool last);

/// How a large message is cut: segment 0 (`threshold` bytes) travels with the header, the others on the channel.
struct SegmentPlan {
    std::uint64_t total;
    std::uint64_t threshold;
    std::uint64_t segment_bytes;

    std::uint64_t count() const;                       ///< segments, number 0 included; at least 2
    std::uint64_t offset(std::uint64_t index) const;   ///< of the segment's first byte in the message
    std::uint64_t size(std::uint64_t index) const;     ///< plaintext bytes of the segment
    bool is_last(std::uint64_t index) const { return index + 1 == count(); }
};

}  // namespace mpisec::wire
