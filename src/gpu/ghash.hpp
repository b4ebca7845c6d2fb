// Multiplication in GHASH's field (NIST SP 800-38D) without tables and without carries: 32-bit integers with
// holes, so that what a carry reaches is masked away. After T. Pornin's BearSSL ("ghash_ctmul").
#pragma once

#include "gpu/portable.hpp"

namespace mpisec::gpu {

/// An element: word[0] has the last four bytes of its block.
struct alignas(16) Element {
    std::uint32_t word[4];
};

MPISEC_BOTH_SIDES Element element_of(const Block& block) {
    return {{swap_bytes(block.word[3]), swap_bytes(block.word[2]), swap_bytes(block.word[1]),
             swap_bytes(block.word[0])}};
}
MPISEC_BOTH_SIDES Block block_of(const Element& element) {
    return {{swap_bytes(element.word[3]), swap_bytes(element.word[2]), swap_bytes(element.word[1]),
             swap_bytes(element.word[0])}};
}
MPISEC_BOTH_SIDES Element add(const Element& a, const Element& b) {
    return {{a.word[0] ^ b.word[0], a.word[1] ^ b.word[1], a.word[2] ^ b.word[2], a.word[3] ^ b.word[3]}};
}

/// 32 bits by 32 bits of polynomials over the field of two elements.
MPISEC_BOTH_SIDES std::uint64_t multiply_words(std::uint32_t a, std::uint32_t b) {
    std::uint32_t x[4], y[4];
    MPISEC_UNROLL
    for (unsigned i = 0; i < 4; ++i) {
        x[i] = a & (0x11111111u << i);
        y[i] = b & (0x11111111u << i);
    }
    std::uint64_t product = 0;
    MPISEC_UNROLL
    for (unsigned i = 0; i < 4; ++i) {
        std::uint64_t sum = 0;
        MPISEC_UNROLL
        for (unsigned j = 0; j < 4; ++j) sum ^= std::uint64_t{x[j]} * y[(i + 4 - j) % 4];
        product |= sum & (0x1111111111111111u << i);
    }
    return product;
}

/// Two words by two words (Karatsuba), exclusive-ored into four words of `to`.
struct Product128 {
    std::uint32_t word[4];
};
MPISEC_BOTH_SIDES Product128 multiply_pairs(std::uint32_t a0, std::uint32_t a1, std::uint32_t b0,
                                            std::uint32_t b1) {
    const std::uint64_t low = multiply_words(a0, b0), high = multiply_words(a1, b1);
    const std::uint64_t middle = multiply_words(a0 ^ a1, b0 ^ b1) ^ low ^ high;
    return {{static_cast<std::uint32_t>(low), static_cast<std::uint32_t>((low >> 32) ^ middle),
             static_cast<std::uint32_t>(high ^ (middle >> 32)), static_cast<std::uint32_t>(high >> 32)}};
}

/// 256 bits, shifted by the one bit by which GHASH's order of bits differs, modulo the field's polynomial.
MPISEC_BOTH_SIDES Element reduce(const std::uint32_t product[8]) {
    std::uint32_t z[8];
    MPISEC_UNROLL
    for (unsigned i = 0; i < 8; ++i) z[i] = (product[i] << 1) | (i == 0 ? 0 : product[(i + 7) % 8] >> 31);
    MPISEC_UNROLL
    for (unsigned i = 0; i < 4; ++i) {
        const std::uint32_t low = z[i];
        z[i + 4] ^= low ^ (low >> 1) ^ (low >> 2) ^ (low >> 7);
        z[i + 3] ^= (low << 31) ^ (low << 30) ^ (low << 25);
    }
    return {{z[4], z[5], z[6], z[7]}};
}

MPISEC_BOTH_SIDES Element multiply(const Element& a, const Element& b) {
    const Product128 low = multiply_pairs(a.word[0], a.word[1], b.word[0], b.word[1]);
    const Product128 high = multiply_pairs(a.word[2], a.word[3], b.word[2], b.word[3]);
    const Product128 both = multiply_pairs(a.word[0] ^ a.word[2], a.word[1] ^ a.word[3],
                                           b.word[0] ^ b.word[2], b.word[1] ^ b.word[3]);
    std::uint32_t product[8];
    MPISEC_UNROLL
    for (unsigned i = 0; i < 4; ++i) {
        product[i] = low.word[i];
        product[i + 4] = high.word[i];
    }
    MPISEC_UNROLL
    for (unsigned i = 0; i < 4; ++i) product[i + 2] ^= both.word[i] ^ low.word[i] ^ high.word[i];
    return reduce(product);
}

}  // namespace mpisec::gpu
