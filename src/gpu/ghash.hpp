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

/// A sum of products of polynomials of 32 bits each. Each factor is taken apart into four, whose bits are four apart; in
/// an integer product of two such parts at most eight ones are added up for a bit, which fits into the four that it
/// has before the next. Which four of a product's 64 bits count is decided by the parts; what carries left in the
/// others is masked away at the end, once for all products.
struct Sum {
    std::uint64_t part[4];  ///< of part i, bits i, i + 4, i + 8, …
};

MPISEC_BOTH_SIDES void take_apart(std::uint32_t word, std::uint32_t parts[4]) {
    MPISEC_UNROLL
    for (unsigned i = 0; i < 4; ++i) parts[i] = word & (0x11111111u << i);
}

/// Where two products are added as integers, the ones for a bit are at most fifteen: of one product they are most,
/// eight, at the bit beside that of the other.
MPISEC_BOTH_SIDES void add_product(Sum& sum, std::uint32_t a, std::uint32_t b) {
    std::uint32_t x[4], y[4];
    take_apart(a, x);
    take_apart(b, y);
    const auto times = [&](unsigned i, unsigned j) { return std::uint64_t{x[i]} * y[j]; };
    sum.part[0] ^= (times(0, 0) + times(1, 3)) ^ times(2, 2) ^ times(3, 1);
    sum.part[1] ^= (times(0, 1) + times(2, 3)) ^ (times(1, 0) + times(3, 2));
    sum.part[2] ^= (times(0, 2) + times(3, 3)) ^ times(1, 1) ^ times(2, 0);
    sum.part[3] ^= times(0, 3) ^ times(1, 2) ^ times(2, 1) ^ times(3, 0);
}

MPISEC_BOTH_SIDES std::uint64_t value_of(const Sum& sum) {
    std::uint64_t value = 0;
    MPISEC_UNROLL
    for (unsigned i = 0; i < 4; ++i) value |= sum.part[i] & (0x1111111111111111u << i);
    return value;
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

/// A sum of products of two elements, reduced at the end (A. Karatsuba's and Y. Ofman's method, twice).
struct ElementSum {
    Sum low[3], high[3], both[3];
};

/// Three products for one of two words by two.
MPISEC_BOTH_SIDES void add_pairs(Sum sum[3], const std::uint32_t a[2], const std::uint32_t b[2]) {
    add_product(sum[0], a[0], b[0]);
    add_product(sum[1], a[1], b[1]);
    add_product(sum[2], a[0] ^ a[1], b[0] ^ b[1]);
}
MPISEC_BOTH_SIDES void add_product(ElementSum& sum, const Element& a, const Element& b) {
    const std::uint32_t a_both[2] = {a.word[0] ^ a.word[2], a.word[1] ^ a.word[3]};
    const std::uint32_t b_both[2] = {b.word[0] ^ b.word[2], b.word[1] ^ b.word[3]};
    add_pairs(sum.low, a.word, b.word);
    add_pairs(sum.high, a.word + 2, b.word + 2);
    add_pairs(sum.both, a_both, b_both);
}

struct Product128 {
    std::uint32_t word[4];
};
MPISEC_BOTH_SIDES Product128 join(const Sum sum[3]) {
    const std::uint64_t low = value_of(sum[0]), high = value_of(sum[1]);
    const std::uint64_t middle = value_of(sum[2]) ^ low ^ high;
    return {{static_cast<std::uint32_t>(low), static_cast<std::uint32_t>((low >> 32) ^ middle),
             static_cast<std::uint32_t>(high ^ (middle >> 32)), static_cast<std::uint32_t>(high >> 32)}};
}
MPISEC_BOTH_SIDES Element value_of(const ElementSum& sum) {
    const Product128 low = join(sum.low), high = join(sum.high), both = join(sum.both);
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

MPISEC_BOTH_SIDES Element multiply(const Element& a, const Element& b) {
    ElementSum sum{};
    add_product(sum, a, b);
    return value_of(sum);
}

}  // namespace mpisec::gpu
