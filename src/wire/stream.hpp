// The STREAM construction (Hoang, Reyhanitabar, Rogaway, Vizár, "Online Authenticated-Encryption and its
// Nonce-Reuse Misuse-Resistance", CRYPTO 2015, section 7) over a large message's segments: segment i is
// sealed under the message's own key with nonce (i, last?), so that segments can be neither swapped nor cut
// off.
#pragma once

#include <cstdint>

#include "aead/throughput.hpp"
#include "wire/frame.hpp"

namespace mpisec::wire {

/// index(8) | last(1) | zero(3). One message key seals each index once, so no nonce repeats under it (S4).
inline Nonce segment_nonce(std::uint64_t index, bool last) {
    Nonce nonce;
    store_le(nonce.data(), index);
    store_le(nonce.data() + 8, static_cast<std::uint32_t>(last));
    return nonce;
}

/// How a large message is cut: segment 0 (`first_bytes`) travels with the header, the others on the
/// channel, `segment_bytes` each, the last one what is left (1 … segment_bytes). All in plaintext bytes.
/// Requires what decode() checks: first_bytes < total <= max_total, segment_bytes > 0.
struct SegmentPlan {
    std::uint64_t total;
    std::uint64_t first_bytes;
    std::uint64_t segment_bytes;

    std::uint64_t count() const;                      ///< segments, number 0 included; at least 2
    std::uint64_t offset(std::uint64_t index) const;  ///< of the segment's first byte in the message
    std::uint64_t size(std::uint64_t index) const;    ///< plaintext bytes of the segment
    bool is_last(std::uint64_t index) const { return index + 1 == count(); }
};

/// What decides how long segments are: each one costs MPI a handshake, and the opening of the last one cannot hide behind another segment.
enum class Cutting {
    slow_cipher,    ///< an eighth of the message, 128 to 512 KiB
    medium_cipher,  ///< a quarter of it, 256 or 512 KiB (docs/adr/0019-few-segments-for-fast-ciphers.md)
    fast_cipher,    ///< 512 KiB: opening takes less than a handshake (the same record)
    shared_cores,  ///< half of it, 512 KiB or 1 MiB: ranks wait for each other's turn on a CPU to shake hands
                   ///< (docs/adr/0007-pipelining-follows-the-cores.md)
    /// An eighth of it, 128 KiB to 1 MiB, and a short last one: threads beside the sender's seal ahead of it, and what is left to hide is
    /// the opening of the last segment (docs/adr/0020-as-few-workers-as-keep-up.md)
    workers,
};
Cutting cutting_for(aead::Speed cipher);
/// How much travels with the header, in plaintext bytes, where each rank has a core and nothing is set; shorter messages travel whole.
std::uint64_t automatic_first_bytes(aead::Speed cipher);
/// The same where the link is so fast that the core is always busy while a message travels: there each additional part costs time.
std::uint64_t automatic_longest_first_bytes(aead::Speed cipher);
/// Segment length, where none is set, for a message of `total` bytes, of which the first `first_bytes` are segment 0.
std::uint64_t automatic_segment_bytes(std::uint64_t total, std::uint64_t first_bytes, Cutting cutting);

}  // namespace mpisec::wire
