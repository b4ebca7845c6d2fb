// Partitioned messages (docs/protocol.md, "Partitioned messages"): how a message is cut into pieces, each of which is sealed and travels on
// its own, and what its two ranks tell each other beforehand.
//
// piece   index(8) | ciphertext | tag(16)
//
// The pieces of one start are sealed under a key of their own, piece i with the nonce (i, 0): each piece is sealed once, so no nonce
// repeats under that key (S4).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "wire/frame.hpp"

namespace mpisec::wire {

inline constexpr std::size_t piece_index_bytes = 8;

/// The sender's partitions, each cut into pieces of at most `piece_bytes` plaintext bytes; an empty partition is one piece.
struct PartitionLayout {
    std::uint64_t partitions = 0;
    std::uint64_t partition_bytes = 0;
    std::uint64_t piece_bytes = 1;

    std::uint64_t total() const { return partitions * partition_bytes; }
    std::uint64_t pieces_of_partition() const {
        return partition_bytes == 0 ? 1 : (partition_bytes - 1) / piece_bytes + 1;
    }
    std::uint64_t count() const { return partitions * pieces_of_partition(); }
    std::uint64_t partition_of(std::uint64_t piece) const { return piece / pieces_of_partition(); }
    /// Where in its partition the piece begins.
    std::uint64_t offset_in_partition(std::uint64_t piece) const {
        return piece % pieces_of_partition() * piece_bytes;
    }
    std::uint64_t offset(std::uint64_t piece) const {
        return partition_of(piece) * partition_bytes + offset_in_partition(piece);
    }
    std::uint64_t size(std::uint64_t piece) const {
        return std::min(piece_bytes, partition_bytes - offset_in_partition(piece));
    }
    std::uint64_t largest() const { return std::min(piece_bytes, partition_bytes); }
    bool operator==(const PartitionLayout&) const = default;
};

/// No MPI has more partitions (int), nor a longer message (MPI_Count). `most_piece_bytes`: no rank of the job cuts larger pieces.
inline bool makes_sense(const PartitionLayout& layout, std::uint64_t most_piece_bytes) {
    return layout.partitions <= static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max()) &&
           layout.piece_bytes > 0 && layout.piece_bytes <= most_piece_bytes &&
           (layout.partitions == 0 || layout.partition_bytes <= max_total / layout.partitions);
}

inline Nonce piece_nonce(std::uint64_t piece) {
    Nonce nonce{};
    store_le(nonce.data(), piece);
    return nonce;
}

/// version(1) kind(1) zero(6) partitions(8) partition bytes(8) piece bytes(8) index(8): the key says which message of which ranks a piece
/// belongs to; this says how that message is cut and which piece of it this is.
inline constexpr std::size_t piece_associated_data_bytes = 40;
using PieceAssociatedData = std::array<std::uint8_t, piece_associated_data_bytes>;
inline PieceAssociatedData piece_associated_data(const PartitionLayout& layout, std::uint64_t piece) {
    PieceAssociatedData ad{};
    store_le(ad.data(), std::uint32_t{version} | static_cast<std::uint32_t>(Kind::partition) << 8);
    store_le(ad.data() + 8, layout.partitions);
    store_le(ad.data() + 16, layout.partition_bytes);
    store_le(ad.data() + 24, layout.piece_bytes);
    store_le(ad.data() + 32, piece);
    return ad;
}

/// What the ranks of a partitioned message tell each other, in ordinary sealed messages: the sender tells once how the message is cut; the
/// receiver tells at each of its starts that it is ready, and under which tag; and a rank that did not accept such a notice tells that all
/// partitioned messages between the two ranks have failed.
struct PartitionNotice {
    enum class Kind : std::uint32_t { layout = 1, ready = 2, failed = 3 };
    ContextId message{};  ///< which partitioned message; zeros in `failed`
    Kind kind = Kind::layout;
    std::int32_t tag = 0;             ///< ready: of the pieces, on the private channel
    std::uint64_t start = 0;          ///< ready: which start, from 1
    PartitionLayout layout{0, 0, 1};  ///< layout
};
inline constexpr std::size_t partition_notice_bytes = 56;
using PartitionNoticeBytes = std::array<std::uint8_t, partition_notice_bytes>;

inline PartitionNoticeBytes encode(const PartitionNotice& notice) {
    PartitionNoticeBytes bytes;
    std::memcpy(bytes.data(), notice.message.data(), notice.message.size());
    store_le(bytes.data() + 16, static_cast<std::uint32_t>(notice.kind));
    store_le(bytes.data() + 20, notice.tag);
    store_le(bytes.data() + 24, notice.start);
    store_le(bytes.data() + 32, notice.layout.partitions);
    store_le(bytes.data() + 40, notice.layout.partition_bytes);
    store_le(bytes.data() + 48, notice.layout.piece_bytes);
    return bytes;
}

/// False when the fields make no sense. The notice has been authenticated; the check guards against faults of MPIsec itself.
inline bool decode(const PartitionNoticeBytes& bytes, std::uint64_t most_piece_bytes,
                   PartitionNotice& notice) {
    std::memcpy(notice.message.data(), bytes.data(), notice.message.size());
    notice.kind = static_cast<PartitionNotice::Kind>(load_le<std::uint32_t>(bytes.data() + 16));
    notice.tag = load_le<std::int32_t>(bytes.data() + 20);
    notice.start = load_le<std::uint64_t>(bytes.data() + 24);
    notice.layout = {load_le<std::uint64_t>(bytes.data() + 32), load_le<std::uint64_t>(bytes.data() + 40),
                     load_le<std::uint64_t>(bytes.data() + 48)};
    if (notice.kind == PartitionNotice::Kind::layout) return makes_sense(notice.layout, most_piece_bytes);
    if (notice.kind == PartitionNotice::Kind::ready) return notice.tag >= 0 && notice.start > 0;
    return notice.kind == PartitionNotice::Kind::failed;
}

}  // namespace mpisec::wire
