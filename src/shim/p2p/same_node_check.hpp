// What the record of a message between ranks of a node says of the message's content (docs/protocol.md, "Same-node records"): the content
// itself where the record has room for it, else a keyed hash. Which hash, the ranks of the node settle in the memory that they share.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

#include "aead/aead.hpp"
#include "aead/short_hash.hpp"

namespace mpisec::shim {

using Check = std::uint8_t[40];

/// The ends of n bytes, as two words that overlap.
template <std::size_t word>
void copy_ends(std::uint8_t* to, const std::uint8_t* from, std::size_t n) {
    std::memcpy(to, from, word);
    std::memcpy(to + n - word, from + n - word, word);
}

/// Copies up to 40 bytes, and puts zeros behind them. Without calls of memcpy and memset, which take longer than all of this.
inline void copy_short(Check& to, const std::uint8_t* from, std::size_t n) {
    std::memset(to, 0, sizeof to);
    if (n > 32) std::memcpy(to + 16, from + 16, 16);
    if (n >= 16) return copy_ends<16>(to, from, n);
    if (n >= 8) return copy_ends<8>(to, from, n);
    if (n >= 4) return copy_ends<4>(to, from, n);
    for (std::size_t i = 0; i < n; ++i) to[i] = from[i];
}

inline bool equal(const Check& one, const Check& other) {
    std::uint64_t different = 0;
    for (std::size_t i = 0; i < sizeof one; i += sizeof different) {
        std::uint64_t a, b;
        std::memcpy(&a, one + i, sizeof a);
        std::memcpy(&b, other + i, sizeof b);
        different |= a ^ b;
    }
    return different == 0;
}

/// The node's keyed hash. Its keys are derived from the job secret when the first message needs them.
class ContentHash {
  public:
    /// `agreement`: in memory that the ranks of the node share, zeros at first.
    explicit ContentHash(std::span<std::uint8_t> agreement);

    /// Ends the job where no crypto library can hash: in MPI_Init, not with the first message that needs it.
    static void require_library();

    /// Any number of bytes.
    void operator()(const std::uint8_t* bytes, std::size_t n, Check& check);

  private:
    struct Agreement;

    void make_mac();
    void make_short_hash();
    void mac_of(const std::uint8_t* bytes, std::size_t n, std::uint8_t* tag);

    Agreement* agreement_;
    aead::Key mac_;               ///< made with the first message that is too long for the short hash
    aead::ShortHash short_hash_;  ///< made with the first one
    bool hashes_short_ = false;   ///< whether the ranks of this node use the short hash
};

}  // namespace mpisec::shim
