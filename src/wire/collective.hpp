// Sealed blocks of collectives (docs/protocol.md, "Collectives"): ciphertext and tag, nothing else. Both ends know the nonce and the
// associated data from the algorithm: which collective on which communicator it is, which rank sealed it, and which of that rank's sealed
// blocks it is.
#pragma once

#include <cstring>

#include "wire/frame.hpp"

namespace mpisec::wire {

/// Names a sealed block within its communicator. A sealer uses each index once in a collective, and a communicator counts its collectives,
/// so no name is used twice (S4).
struct SealedBlockName {
    std::uint64_t collective;  ///< number of the collective on its communicator, from 0
    std::int32_t sealer;       ///< rank
    std::uint32_t index;
};

/// collective(4) | sealer(4) | index(4), under the key of the communicator and epoch. `collective` is counted within the epoch.
inline Nonce sealed_block_nonce(std::uint32_t collective, std::int32_t sealer, std::uint32_t index) {
    Nonce nonce;
    store_le(nonce.data(), collective);
    store_le(nonce.data() + 4, sealer);
    store_le(nonce.data() + 8, index);
    return nonce;
}

/// version(1) kind(1) zero(2) sealer(4) index(4) zero(4) context(16) collective(8) length(8): what a sealed block is bound to (S2). length
/// is that of the plaintext.
inline constexpr std::size_t sealed_block_associated_data_bytes = 48;
using SealedBlockAssociatedData = std::array<std::uint8_t, sealed_block_associated_data_bytes>;

inline SealedBlockAssociatedData sealed_block_associated_data(const ContextId& context,
                                                              const SealedBlockName& name,
                                                              std::uint64_t length) {
    SealedBlockAssociatedData ad{};
    store_le(ad.data(), std::uint32_t{version} | static_cast<std::uint32_t>(Kind::collective) << 8);
    store_le(ad.data() + 4, name.sealer);
    store_le(ad.data() + 8, name.index);
    std::memcpy(ad.data() + 16, context.data(), context.size());
    store_le(ad.data() + 32, name.collective);
    store_le(ad.data() + 40, length);
    return ad;
}

/// Sealed blocks that are larger than this, or that follow the first few that a rank seals for each of the other ranks, have keys of their
/// own: so an epoch's key sees a bounded number of sealed blocks and bytes, however much a collective moves (S6).
inline constexpr std::size_t sealed_block_key_threshold = 64 * 1024;
inline constexpr std::uint64_t common_key_sealed_blocks = 4;  ///< for each rank of the communicator

constexpr bool has_own_key(std::size_t plain_bytes, std::uint64_t index, std::uint64_t ranks) {
    return plain_bytes > sealed_block_key_threshold || index >= common_key_sealed_blocks * ranks;
}

}  // namespace mpisec::wire
