// A keyed hash of short byte strings, for uses where no attacker sees the hash (docs/protocol.md, "Same-node records"): a universal hash,
// which unlike a MAC neither sets up nor finishes a state.
//
// Words of 64 bits are polynomials over GF(2); + is exclusive or, * their product (128 bits):
//   half(k) = sum over pairs i of (m[2i] + k[2i]) * (m[2i+1] + k[2i+1])
//   hash = half(key) | half(key from its ninth word on)
// That is NH of UMAC (Black et al., CRYPTO 1999, doi:10.1007/3-540-48405-1_14) without carries. Two strings of one length have the same
// hash with probability 2^-128 at most: where they differ last, the difference of one half is, whatever the rest, a product of one word of
// the key that the other half does not use there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace mpisec::aead {

/// The key is in locked memory, which reads as zero in a forked child: such a child is not a rank of the node.
class ShortHash {
  public:
    static constexpr std::size_t longest = 4096;
    static constexpr std::size_t key_bytes = longest + 64;
    static constexpr std::size_t hash_bytes = 32;

    ShortHash() = default;  ///< none
    explicit ShortHash(std::span<const std::uint8_t, key_bytes> key);
    explicit operator bool() const { return key_ != nullptr; }

    /// Whether this processor has the instructions that make the hash worth while. Without them it is slow.
    static bool is_fast();
    /// n is at most `longest`; writes hash_bytes to `out`.
    void operator()(const std::uint8_t* bytes, std::size_t n, std::uint8_t* out) const;
    /// The same in plain C++, as on processors that lack the instructions.
    void portable(const std::uint8_t* bytes, std::size_t n, std::uint8_t* out) const;

  private:
    struct WipedSlot {
        void operator()(std::uint8_t* slot) const;
    };
    std::unique_ptr<std::uint8_t, WipedSlot> key_;
};

}  // namespace mpisec::aead
