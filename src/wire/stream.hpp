// The STREAM construction (Hoang, Reyhanitabar, Rogaway, Vizár, "Online Authenticated-Encryption and its
// Nonce-Reuse Misuse-Resistance", CRYPTO 2015, section 7) over a large message's segments: segment i is
// sealed under the message's own key with nonce (i, last?), so that segments can be neither swapped nor cut
// off.
#pragma once

#include <cstdint>

#include "wire/frame.hpp"

namespace mpisec::wire {

/// index(8) | last(1) | zero(3). One message key seals each index once, so no nonce repeats under it (S4).
inline Nonce segment_nonce(std::uint64_t index, bool last) {
    Nonce nonce;
    store_le(nonce.data(), index);
    store_le(nonce.data() + 8, static_cast<std::uint32_t>(last));
    return nonce;
}

/// How a large message is cut: segment 0 (`threshold` bytes) travels with the header, the others on the
/// channel, `segment_bytes` each, the last one what is left (1 … segment_bytes). All in plaintext bytes.
///
/// Tapering ones become shorter towards the end: each is two thirds of what is left, rounded up to taper_unit, but at
/// most segment_bytes. Every segment costs both sides one more exchange with the MPI library, so they are few; and
/// nothing hides the opening of the last one, so that is short.
///
/// Requires what decode() checks: threshold < total <= max_total, segment_bytes > 0, and where they taper a multiple of
/// taper_unit.
struct SegmentPlan {
    std::uint64_t total;
    std::uint64_t threshold;
    std::uint64_t segment_bytes;
    bool tapering = false;

    std::uint64_t count() const;                      ///< segments, number 0 included; at least 2
    std::uint64_t offset(std::uint64_t index) const;  ///< of the segment's first byte in the message
    std::uint64_t size(std::uint64_t index) const;    ///< plaintext bytes of the segment
    bool is_last(std::uint64_t index) const { return index + 1 == count(); }

  private:
    std::uint64_t equal_segments() const;  ///< of segment_bytes, or cut off by the end
    std::uint64_t after_equal() const;     ///< bytes that are left when these have gone
    static std::uint64_t shorter(std::uint64_t left);
};

/// Who seals and opens: what the segments of a message depend on where nothing is set.
enum class Sealer : std::uint8_t {
    caller,  ///< the thread that also sends them: they taper from 512 KiB (docs/adr/0017-segments-taper.md)
    workers,  ///< beside it: an eighth of the message, a power of two from 128 to 512 KiB, so that all have some
    crowded  ///< ranks wait for each other's turn on a CPU for each agreement, so few: half of the message, 512 KiB or
             ///< 1 MiB (docs/adr/0007-pipelining-follows-the-cores.md)
};
SegmentPlan automatic_plan(std::uint64_t total, std::uint64_t threshold, Sealer sealer);

}  // namespace mpisec::wire
