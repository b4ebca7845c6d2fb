// AES, bitsliced: 32 blocks at once in 128 words, of which word 8 i + k holds bit k of byte i of every block.
// No table is looked up and no branch is taken by what is secret, so time does not depend on it, on a GPU or on
// the host. The S-box is the circuit of J. Boyar and R. Peralta, "A New Combinational Logic Minimization
// Technique with Applications to Cryptology" (SEA 2010, doi:10.1007/978-3-642-13193-6_16).
#pragma once

#include "gpu/portable.hpp"

namespace mpisec::gpu {

inline constexpr unsigned planes = 128;  ///< words of a state, and of a round key
inline constexpr unsigned blocks_at_once = 32;
inline constexpr unsigned most_rounds = 14;

/// The circuit's first linear layer: y[0] is not used. `x` begins with the most significant bit.
MPISEC_BOTH_SIDES void sbox_top(const std::uint32_t x[8], std::uint32_t y[22]) {
    const std::uint32_t t0 = x[1] ^ x[2];
    y[14] = x[3] ^ x[5];
    y[13] = x[0] ^ x[6];
    y[9] = x[0] ^ x[3];
    y[8] = x[0] ^ x[5];
    y[1] = t0 ^ x[7];
    y[4] = y[1] ^ x[3];
    y[12] = y[13] ^ y[14];
    y[2] = y[1] ^ x[0];
    y[5] = y[1] ^ x[6];
    y[3] = y[5] ^ y[8];
    const std::uint32_t t1 = x[4] ^ y[12];
    y[15] = t1 ^ x[5];
    y[20] = t1 ^ x[1];
    y[6] = y[15] ^ x[7];
    y[10] = y[15] ^ t0;
    y[11] = y[20] ^ y[9];
    y[7] = x[7] ^ y[11];
    y[17] = y[10] ^ y[11];
    y[19] = y[10] ^ y[8];
    y[16] = t0 ^ y[11];
    y[21] = y[13] ^ y[16];
    y[18] = x[0] ^ y[16];
}

/// Inversion in the field of 16 elements, and what leads to it: g[0] to g[8] are the circuit's t29, t33, t37,
/// t40 to t45 without gaps.
MPISEC_BOTH_SIDES void sbox_inverse(const std::uint32_t y[22], std::uint32_t x7, std::uint32_t g[9]) {
    const std::uint32_t t2 = y[12] & y[15], t4 = (y[3] & y[6]) ^ t2, t6 = (y[4] & x7) ^ t2;
    const std::uint32_t t7 = y[13] & y[16], t9 = (y[5] & y[1]) ^ t7, t11 = (y[2] & y[7]) ^ t7;
    const std::uint32_t t12 = y[9] & y[11], t14 = (y[14] & y[17]) ^ t12, t16 = (y[8] & y[10]) ^ t12;
    const std::uint32_t t21 = t4 ^ t14 ^ y[20], t22 = t6 ^ t16 ^ y[19];
    const std::uint32_t t23 = t9 ^ t14 ^ y[21], t24 = t11 ^ t16 ^ y[18];
    const std::uint32_t t25 = t21 ^ t22, t26 = t21 & t23, t27 = t24 ^ t26;
    const std::uint32_t t29 = (t25 & t27) ^ t22;
    const std::uint32_t t33 = ((t22 ^ t26) & (t23 ^ t24)) ^ t24;
    const std::uint32_t t36 = t24 & (t27 ^ t33), t37 = t36 ^ (t23 ^ t33);
    const std::uint32_t t40 = t25 ^ (t29 & (t27 ^ t36)), t41 = t40 ^ t37, t42 = t29 ^ t33;
    g[0] = t29;
    g[1] = t33;
    g[2] = t37;
    g[3] = t40;
    g[4] = t41;
    g[5] = t42;
    g[6] = t29 ^ t40;
    g[7] = t33 ^ t37;
    g[8] = t42 ^ t41;
}

/// The last layers, to eight bits of which the first is the most significant.
MPISEC_BOTH_SIDES void sbox_bottom(const std::uint32_t y[22], std::uint32_t x7, const std::uint32_t g[9],
                                   std::uint32_t s[8]) {
    const std::uint32_t t29 = g[0], t33 = g[1], t37 = g[2], t40 = g[3], t41 = g[4], t42 = g[5], t43 = g[6],
                        t44 = g[7], t45 = g[8];
    const std::uint32_t z0 = t44 & y[15], z1 = t37 & y[6], z2 = t33 & x7, z3 = t43 & y[16], z4 = t40 & y[1];
    const std::uint32_t z5 = t29 & y[7], z6 = t42 & y[11], z7 = t45 & y[17], z8 = t41 & y[10];
    const std::uint32_t z9 = t44 & y[12], z10 = t37 & y[3], z11 = t33 & y[4], z12 = t43 & y[13];
    const std::uint32_t z13 = t40 & y[5], z14 = t29 & y[2], z15 = t42 & y[9], z16 = t45 & y[14];
    const std::uint32_t z17 = t41 & y[8];
    const std::uint32_t t46 = z15 ^ z16, t47 = z10 ^ z11, t48 = z5 ^ z13, t49 = z9 ^ z10, t50 = z2 ^ z12;
    const std::uint32_t t51 = z2 ^ z5, t52 = z7 ^ z8, t53 = z0 ^ z3, t54 = z6 ^ z7, t55 = z16 ^ z17;
    const std::uint32_t t56 = z12 ^ t48, t57 = t50 ^ t53, t58 = z4 ^ t46, t59 = z3 ^ t54, t60 = t46 ^ t57;
    const std::uint32_t t61 = z14 ^ t57, t62 = t52 ^ t58, t63 = t49 ^ t58, t64 = z4 ^ t59, t65 = t61 ^ t62;
    const std::uint32_t t66 = z1 ^ t63, t67 = t64 ^ t65;
    s[0] = t59 ^ t63;
    s[6] = t56 ^ ~t62;
    s[7] = t48 ^ ~t60;
    s[3] = t53 ^ t66;
    s[4] = t51 ^ t66;
    s[5] = t47 ^ t65;
    s[1] = t64 ^ ~s[3];
    s[2] = t55 ^ ~t67;
}

/// SubBytes of one byte of every block; bit[0] is the least significant.
MPISEC_BOTH_SIDES void substitute(std::uint32_t bit[8]) {
    const std::uint32_t x[8] = {bit[7], bit[6], bit[5], bit[4], bit[3], bit[2], bit[1], bit[0]};
    std::uint32_t y[22], g[9], s[8];
    sbox_top(x, y);
    sbox_inverse(y, x[7], g);
    sbox_bottom(y, x[7], g, s);
    MPISEC_UNROLL
    for (unsigned k = 0; k < 8; ++k) bit[k] = s[7 - k];
}

/// One word at a time: loads of four, for which nvcc would have to know that they are aligned, take more
/// registers than there are.
MPISEC_BOTH_SIDES void add_round_key(std::uint32_t state[planes], const std::uint32_t* key) {
    MPISEC_UNROLL
    for (unsigned i = 0; i < planes; ++i) state[i] ^= key[i];
}

/// Place of byte `row` of column `column` before ShiftRows.
MPISEC_BOTH_SIDES constexpr unsigned unshifted(unsigned column, unsigned row) {
    return 8 * (4 * ((column + row) % 4) + row);
}

/// Bit k of 2 a + 3 b + c + d in AES's field, for one byte of a column.
MPISEC_BOTH_SIDES void mix_byte(const std::uint32_t* a, const std::uint32_t* b, const std::uint32_t* c,
                                const std::uint32_t* d, std::uint32_t* to) {
    const std::uint32_t high = a[7] ^ b[7];
    MPISEC_UNROLL
    for (unsigned k = 0; k < 8; ++k) {
        std::uint32_t doubled = k == 0 ? high : a[(k + 7) % 8] ^ b[(k + 7) % 8];
        if (k == 1 || k == 3 || k == 4) doubled ^= high;
        to[k] = doubled ^ b[k] ^ c[k] ^ d[k];
    }
}

/// ShiftRows and MixColumns.
MPISEC_BOTH_SIDES void shift_and_mix(std::uint32_t state[planes]) {
    std::uint32_t mixed[planes];
    MPISEC_UNROLL
    for (unsigned column = 0; column < 4; ++column) {
        MPISEC_UNROLL
        for (unsigned row = 0; row < 4; ++row)
            mix_byte(state + unshifted(column, row), state + unshifted(column, (row + 1) % 4),
                     state + unshifted(column, (row + 2) % 4), state + unshifted(column, (row + 3) % 4),
                     mixed + 8 * (4 * column + row));
    }
    MPISEC_UNROLL
    for (unsigned i = 0; i < planes; ++i) state[i] = mixed[i];
}

MPISEC_BOTH_SIDES void shift_rows(std::uint32_t state[planes]) {
    std::uint32_t shifted[planes];
    MPISEC_UNROLL
    for (unsigned i = 0; i < planes; ++i) shifted[i] = state[unshifted(i / 32, (i / 8) % 4) + i % 8];
    MPISEC_UNROLL
    for (unsigned i = 0; i < planes; ++i) state[i] = shifted[i];
}

/// Encrypts 32 blocks. `keys`: 128 words for each of rounds + 1 round keys, all ones or all zeros.
MPISEC_BOTH_SIDES void encrypt(std::uint32_t state[planes], const std::uint32_t* keys, unsigned rounds) {
    add_round_key(state, keys);
    MPISEC_KEEP_ROLLED
    for (unsigned round = 1; round < rounds; ++round) {
        MPISEC_UNROLL
        for (unsigned i = 0; i < planes; i += 8) substitute(state + i);
        shift_and_mix(state);
        add_round_key(state, keys + planes * round);
    }
    MPISEC_UNROLL
    for (unsigned i = 0; i < planes; i += 8) substitute(state + i);
    shift_rows(state);
    add_round_key(state, keys + planes * rounds);
}

/// One step of the transposition of a matrix of 32 by 32 bits.
template <unsigned distance>
MPISEC_BOTH_SIDES void swap_bits(std::uint32_t rows[32], std::uint32_t low) {
    MPISEC_UNROLL
    for (unsigned i = 0; i < 32; ++i) {
        if (i & distance) continue;
        const std::uint32_t changed = ((rows[i] >> distance) ^ rows[i + distance]) & low;
        rows[i + distance] ^= changed;
        rows[i] ^= changed << distance;
    }
}

/// Bit c of rows[r] becomes bit r of rows[c].
MPISEC_BOTH_SIDES void transpose(std::uint32_t rows[32]) {
    swap_bits<16>(rows, 0x0000ffff);
    swap_bits<8>(rows, 0x00ff00ff);
    swap_bits<4>(rows, 0x0f0f0f0f);
    swap_bits<2>(rows, 0x33333333);
    swap_bits<1>(rows, 0x55555555);
}

}  // namespace mpisec::gpu
