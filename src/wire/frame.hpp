// Layout of what travels between nodes (docs/protocol.md). Pure functions over bytes; nothing here allocates.
//
// small message   nonce(12) | ciphertext(n) | tag(16)                              travels in one part
// large message   nonce(12) | header ciphertext(20) | tag(16) | segment 0 (first bytes) | tag(16),
//                 then segments 1… on the channel, each ciphertext | tag(16)
//
// First parts have one of two lengths in a job, so that a probe knows the plaintext's length of nearly every small message before anything
// is received, and knows which other messages it must open. All integers are little-endian (base/bytes.hpp).
//
// Everything is inline: a 16-byte message has a budget of 500 ns for all of MPIsec.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "aead/aead.hpp"
#include "base/bytes.hpp"

namespace mpisec::wire {

inline constexpr std::uint8_t version = 1;

/// What a sealed message is. The kind is in the nonce and in the associated data, so that one kind never opens as another.
enum class Kind : std::uint8_t { small = 1, large_header = 2, collective = 3, partition = 4 };

using Nonce = std::array<std::uint8_t, aead::nonce_bytes>;

/// The distance, in counters, from a message back to the sender's last message with the same communicator (predecessors.hpp).
struct WayBack {
    std::uint16_t same_tag = 0;  ///< and the same tag
    std::uint8_t any_tag = 0;
    bool operator==(const WayBack&) const = default;
};

/// epoch, kind and the way back whatever the tag(4) | counter(6) | way back with the same tag(2). In the first four bytes the epoch has the
/// lowest 20 bits, the kind the next 4. The counter is one sequence per (sender, receiver), whatever the kind, and never repeats (S4).
inline constexpr std::uint32_t max_epoch = (1u << 20) - 1;
inline constexpr std::uint64_t max_counter = (1ull << 48) - 1;
struct NonceFields {
    Kind kind;
    std::uint32_t epoch;    ///< 0 … max_epoch
    std::uint64_t counter;  ///< of the pair of ranks, 0 … max_counter
    WayBack back = {};
};

inline Nonce make_nonce(const NonceFields& fields) {
    assert(fields.epoch <= max_epoch);
    Nonce nonce;
    store_le(nonce.data(), static_cast<std::uint32_t>(fields.back.any_tag) << 24 |
                               static_cast<std::uint32_t>(fields.kind) << 20 | fields.epoch);
    assert(fields.counter <= max_counter);
    store_le(nonce.data() + 4, fields.counter | static_cast<std::uint64_t>(fields.back.same_tag) << 48);
    return nonce;
}

/// Reads what the fields claim: nothing is authenticated until the message opens. False for an unknown kind.
inline bool parse_nonce(const std::uint8_t* bytes, NonceFields& fields) {
    const auto first = load_le<std::uint32_t>(bytes);
    const std::uint32_t kind = first >> 20 & 0xf;
    if (kind != static_cast<std::uint32_t>(Kind::small) &&
        kind != static_cast<std::uint32_t>(Kind::large_header))
        return false;
    const auto second = load_le<std::uint64_t>(bytes + 4);
    fields = {static_cast<Kind>(kind),
              first & max_epoch,
              second & max_counter,
              {static_cast<std::uint16_t>(second >> 48), static_cast<std::uint8_t>(first >> 24)}};
    return true;
}

using ContextId = std::array<std::uint8_t, 16>;  ///< identifies a communicator within the job
                                                 ///< (docs/protocol.md, "Contexts")

/// version(1) kind(1) zero(2) source(4) destination(4) tag(4) context(16) length(8): what a message is bound
/// to (S2). source and destination are world ranks, tag is the user's; length is the plaintext's for a small
/// message, the wire length of the first MPI message for a large one (the total length is inside the sealed
/// header).
inline constexpr std::size_t associated_data_bytes = 40;
using AssociatedData = std::array<std::uint8_t, associated_data_bytes>;

inline AssociatedData associated_data(Kind kind, const ContextId& context, std::int32_t source,
                                      std::int32_t destination, std::int32_t tag, std::uint64_t length) {
    AssociatedData ad;
    store_le(ad.data(), std::uint32_t{version} | static_cast<std::uint32_t>(kind) << 8);
    store_le(ad.data() + 4, source);
    store_le(ad.data() + 8, destination);
    store_le(ad.data() + 12, tag);
    std::memcpy(ad.data() + 16, context.data(), context.size());
    store_le(ad.data() + 32, length);
    return ad;
}

inline constexpr std::size_t small_overhead = aead::nonce_bytes + aead::tag_bytes;  // 28
constexpr std::size_t small_wire_bytes(std::size_t plaintext) {
    return plaintext + small_overhead;
}

/// total(8) first bytes(4) segment bytes(4) channel tag(4)
struct LargeHeader {
    std::uint64_t total;          ///< plaintext bytes of the whole message
    std::uint32_t first_bytes;    ///< plaintext bytes of segment 0, which travels with the header
    std::uint32_t segment_bytes;  ///< plaintext bytes of each channel segment but the last
    std::int32_t channel_tag;     ///< MPI tag of the segments on the private communicator
};
inline constexpr std::size_t large_header_bytes = 20;
/// 48 bytes.
inline constexpr std::size_t sealed_header_bytes = aead::nonce_bytes + large_header_bytes + aead::tag_bytes;

/// No MPI can name a longer message (MPI_Count), nor a longer segment (int) once its tag is added.
inline constexpr std::uint64_t max_total = std::numeric_limits<std::int64_t>::max();
inline constexpr std::uint32_t max_segment_bytes =
    std::numeric_limits<std::int32_t>::max() - static_cast<std::uint32_t>(aead::tag_bytes);

inline void encode(const LargeHeader& header, std::uint8_t* to) {
    store_le(to, header.total);
    store_le(to + 8, header.first_bytes);
    store_le(to + 12, header.segment_bytes);
    store_le(to + 16, header.channel_tag);
}

/// False when the fields make no sense where the first part has at most `threshold` bytes: a longer first part, a total that needs no
/// second segment or exceeds max_total, segments of 0 or more than max_segment_bytes, a negative tag. The header is authenticated before it
/// is decoded; the check guards against settings that differ and against faults of MPIsec itself.
inline bool decode(const std::uint8_t* from, std::size_t threshold, LargeHeader& header) {
    header = {load_le<std::uint64_t>(from), load_le<std::uint32_t>(from + 8),
              load_le<std::uint32_t>(from + 12), load_le<std::int32_t>(from + 16)};
    return header.first_bytes <= threshold && header.total > header.first_bytes &&
           header.total <= max_total && header.segment_bytes > 0 &&
           header.segment_bytes <= max_segment_bytes && header.channel_tag >= 0;
}

/// Wire length of a large message's first MPI message.
constexpr std::size_t large_first_wire_bytes(std::size_t first_bytes) {
    return sealed_header_bytes + first_bytes + aead::tag_bytes;
}

}  // namespace mpisec::wire
