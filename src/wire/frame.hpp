// Layout of what travels between nodes (docs/protocol.md). Pure functions over bytes; nothing here allocates.
//
// small message   nonce(12) | ciphertext(n) | tag(16)                                   n <= threshold
// large message   nonce(12) | header ciphertext(16) | tag(16) | segment 0 (threshold) | tag(16), then segments on the channel
//
// The wire length tells the two apart, so that a probe knows the plaintext's length of a small message, or that it
// must open a header, before anything is received.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "aead/aead.hpp"
#include "base/bytes.hpp"

namespace mpisec::wire {

inline constexpr std::uint8_t version = 1;

/// What a sealed message is; in the nonce and in the associated data, so that one kind never opens as another.
enum class Kind : std::uint8_t { small = 1, large_header = 2 };

using Nonce = std::array<std::uint8_t, aead::nonce_bytes>;

/// epoch-and-kind(4) | counter(8), little-endian: kind in the top byte, epoch in the lower 24 bits.
inline constexpr std::uint32_t max_epoch = (1u << 24) - 1;
struct NonceFields {
    Kind kind;
    std::uint32_t epoch;
    std::uint64_t counter;
};
Nonce make_nonce(const NonceFields& fields);
/// Fields as they claim to be: nothing is authenticated until the message opens. False for an unknown kind.
bool parse_nonce(const std::uint8_t* bytes, NonceFields& fields);

using ContextId = std::array<std::uint8_t, 16>;  ///< identifies a communicator within the job (design.md 2.4)

/// version(1) kind(1) zero(2) source(4) destination(4) tag(4) context(16) length(8): what a message is bound to (S2).
/// source and destination are world ranks, tag is the user's; length is the plaintext's for a small message, the
/// wire length of the first MPI message for a large one (the total length is inside the sealed header).
inline constexpr std::size_t associated_data_bytes = 40;
using AssociatedData = std::array<std::uint8_t, associated_data_bytes>;
AssociatedData associated_data(Kind kind, const ContextId& context, std::int32_t source, std::int32_t destination, std::int32_t tag,
                               std::uint64_t length);

inline constexpr std::size_t small_overhead = aead::nonce_bytes + aead::tag_bytes;  // 28
constexpr std::size_t small_wire_bytes(std::size_t plaintext) { return plaintext + small_overhead; }

/// total(8) segment bytes(4) channel tag(4)
struct LargeHeader {
    std::uint64_t total;          ///< plaintext bytes of the whole message
    std::uint32_t segment_bytes;  ///< plaintext bytes of each channel segment but the last
    std::int32_t channel_tag;     ///< MPI tag of the segments on the private communicator
};
inline constexpr std::size_t large_header_bytes = 16;
inline constexpr std::size_t sealed_header_bytes = aead::nonce_bytes + large_header_bytes + aead::tag_bytes;  // 44
void encode(const LargeHeader& header, std::uint8_t* to);
/// False when the fields make no sense for `threshold` (total <= threshold, segment 0 bytes, negative tag).
bool decode(const std::uint8_t* from, std::size_t threshold, LargeHeader& header);
/// Wire length of a large message's first MPI message: its segment 0 always holds exactly `threshold` bytes.
constexpr std::size_t large_first_wire_bytes(std::size_t threshold) { return sealed_header_bytes + threshold + aead::tag_bytes; }

}  // namespace mpisec::wire
