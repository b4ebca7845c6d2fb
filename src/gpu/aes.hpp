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

/// The S-box of eight words, of which the first has the most significant bits: 73 functions of three bits, which a GPU
/// computes in one instruction each. Boyar's and Peralta's circuit, mapped to such functions by ABC
/// (`strash; ifraig; dch; if -K 3 -a; mfs`, many times over).
MPISEC_BOTH_SIDES void sbox(const std::uint32_t x[8], std::uint32_t s[8]) {
    const std::uint32_t t0 = lut<0xc3>(x[3], x[5], x[5]), t1 = lut<0x96>(x[1], x[2], x[7]),
                        t2 = lut<0x3c>(x[0], x[6], x[6]), t3 = lut<0xc3>(t0, t2, t2);
    const std::uint32_t t4 = lut<0x69>(t3, x[1], x[4]), t5 = lut<0x96>(t4, x[0], x[3]),
                        t6 = lut<0x69>(t5, x[1], x[2]), t7 = lut<0x72>(x[0], x[6], t6);
    const std::uint32_t t8 = lut<0xa9>(t1, x[6], t7), t9 = lut<0x69>(t2, x[3], x[4]),
                        t10 = lut<0x96>(t9, x[1], x[2]), t11 = lut<0xc3>(t5, t10, t10);
    const std::uint32_t t12 = lut<0x28>(x[0], x[3], t4), t13 = lut<0xa9>(t11, t0, t12),
                        t14 = lut<0xc3>(t8, t13, t13), t15 = lut<0x3c>(t1, x[0], x[0]);
    const std::uint32_t t16 = lut<0x82>(t5, x[7], t15), t17 = lut<0xc3>(x[0], x[5], x[5]),
                        t18 = lut<0x56>(t10, t17, t12), t19 = lut<0x69>(t7, t16, t18);
    const std::uint32_t t20 = lut<0x0c>(t9, t3, t3), t21 = lut<0x96>(t1, t17, x[6]),
                        t22 = lut<0x09>(t21, t9, x[7]), t23 = lut<0x3c>(t20, t22, t22);
    const std::uint32_t t24 = lut<0x96>(t13, t23, t4), t25 = lut<0x28>(t1, x[3], x[7]),
                        t26 = lut<0x95>(t10, t17, t25), t27 = lut<0x96>(t26, t12, t20);
    const std::uint32_t t28 = lut<0x59>(t24, t14, t27), t29 = lut<0x27>(t14, t19, t28),
                        t30 = lut<0xa6>(t24, t14, t19), t31 = lut<0x72>(t27, t24, t30);
    const std::uint32_t t32 = lut<0xc3>(t29, t31, t31), t33 = lut<0x2a>(t24, t14, t19),
                        t34 = lut<0x15>(t14, t29, t33), t35 = lut<0x51>(t24, t19, t27);
    const std::uint32_t t36 = lut<0x56>(t14, t24, t35), t37 = lut<0x3c>(t34, t36, t36),
                        t38 = lut<0x09>(t0, t32, t37), t39 = lut<0x28>(x[0], x[3], t32);
    const std::uint32_t t40 = lut<0xc3>(t38, t39, t39), t41 = lut<0x09>(t11, t32, t37),
                        t42 = lut<0x28>(t31, t36, t6), t43 = lut<0x59>(t5, t32, t42);
    const std::uint32_t t44 = lut<0xc0>(t36, t1, t1), t45 = lut<0x96>(t41, t43, t44),
                        t46 = lut<0xb9>(t14, t33, t29), t47 = lut<0x03>(t34, t21, t21);
    const std::uint32_t t48 = lut<0x95>(t46, t3, t47);
    s[0] = lut<0x69>(t40, t45, t48);
    const std::uint32_t t49 = lut<0x3c>(t40, t44, t44), t50 = lut<0x09>(t34, t9, x[7]),
                        t51 = lut<0x69>(t49, t48, t50), t52 = lut<0x59>(t9, t46, t42);
    s[3] = lut<0x3c>(t51, t52, t52);
    s[1] = lut<0x3c>(s[3], t45, t45);
    const std::uint32_t t53 = lut<0xa9>(t37, t10, t41), t54 = lut<0x28>(t31, t36, t2),
                        t55 = lut<0x0c>(t29, x[7], x[7]), t56 = lut<0x69>(t52, t54, t55);
    const std::uint32_t t57 = lut<0x95>(t31, t15, t56), t58 = lut<0x96>(t49, t53, t57),
                        t59 = lut<0xa9>(t37, t17, t38);
    s[2] = lut<0x96>(t58, t45, t59);
    const std::uint32_t t60 = lut<0x82>(t5, x[7], t31);
    s[4] = lut<0x69>(t51, t55, t60);
    const std::uint32_t t61 = lut<0x06>(t29, t1, x[3]);
    s[5] = lut<0x96>(t58, t47, t61);
    const std::uint32_t t62 = lut<0x28>(t1, x[6], t36), t63 = lut<0xc3>(t60, t62, t62),
                        t64 = lut<0x69>(t53, t63, t54);
    s[6] = lut<0x3c>(t49, t64, t64);
    s[7] = lut<0x69>(t40, t56, t63);
}

/// SubBytes of one byte of every block; bit[0] is the least significant.
MPISEC_BOTH_SIDES void substitute(std::uint32_t bit[8]) {
    const std::uint32_t x[8] = {bit[7], bit[6], bit[5], bit[4], bit[3], bit[2], bit[1], bit[0]};
    std::uint32_t s[8];
    sbox(x, s);
    MPISEC_UNROLL
    for (unsigned k = 0; k < 8; ++k) bit[k] = s[7 - k];
}

MPISEC_BOTH_SIDES void add_round_key(std::uint32_t state[planes], const std::uint32_t* key) {
    MPISEC_UNROLL
    for (unsigned i = 0; i < planes; ++i) state[i] ^= key[i];
}

/// Place of byte `row` of column `column` before ShiftRows.
MPISEC_BOTH_SIDES constexpr unsigned unshifted(unsigned column, unsigned row) {
    return 8 * (4 * ((column + row) % 4) + row);
}

/// 2 a + 3 b + c + d + key in AES's field, for one byte of a column, bit by bit.
MPISEC_BOTH_SIDES void mix_byte(const std::uint32_t* const byte[4], const std::uint32_t* key,
                                std::uint32_t* to) {
    const std::uint32_t *a = byte[0], *b = byte[1], *c = byte[2], *d = byte[3];
    const std::uint32_t high = a[7] ^ b[7];
    MPISEC_UNROLL
    for (unsigned k = 0; k < 8; ++k) {
        const std::uint32_t rest = parity(b[k], c[k], d[k]);
        if (k == 0)
            to[k] = parity(rest, high, key[k]);
        else if (k == 1 || k == 3 || k == 4)
            to[k] = parity(parity(rest, high, key[k]), a[k - 1], b[k - 1]);
        else
            to[k] = parity(rest ^ key[k], a[k - 1], b[k - 1]);
    }
}

/// ShiftRows, MixColumns and AddRoundKey.
MPISEC_BOTH_SIDES void shift_mix_and_add(std::uint32_t state[planes], const std::uint32_t* key) {
    std::uint32_t mixed[planes];
    MPISEC_UNROLL
    for (unsigned column = 0; column < 4; ++column) {
        MPISEC_UNROLL
        for (unsigned row = 0; row < 4; ++row) {
            const std::uint32_t* const bytes[4] = {
                state + unshifted(column, row), state + unshifted(column, (row + 1) % 4),
                state + unshifted(column, (row + 2) % 4), state + unshifted(column, (row + 3) % 4)};
            const unsigned at = 8 * (4 * column + row);
            mix_byte(bytes, key + at, mixed + at);
        }
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
        shift_mix_and_add(state, keys + planes * round);
    }
    MPISEC_UNROLL
    for (unsigned i = 0; i < planes; i += 8) substitute(state + i);
    shift_rows(state);
    add_round_key(state, keys + planes * rounds);
}

/// One step of the transposition of a matrix of 32 by 32 bits: of two rows, one keeps its low bits of each group of
/// 2 * distance and takes the other's low ones as its high ones, the other keeps the high bits.
template <unsigned distance>
MPISEC_BOTH_SIDES void swap_bits(std::uint32_t rows[32], std::uint32_t low) {
    MPISEC_UNROLL
    for (unsigned i = 0; i < 32; ++i) {
        if (i & distance) continue;
        const std::uint32_t first = rows[i], second = rows[i + distance];
        rows[i] = choose(low, first, second << distance);
        rows[i + distance] = choose(low, first >> distance, second);
    }
}
/// The same for whole bytes, of which `first` and `second` choose four each (permute_bytes()).
template <unsigned distance, unsigned first, unsigned second>
MPISEC_BOTH_SIDES void swap_whole_bytes(std::uint32_t rows[32]) {
    MPISEC_UNROLL
    for (unsigned i = 0; i < 32; ++i) {
        if (i & distance) continue;
        const std::uint32_t a = rows[i], b = rows[i + distance];
        rows[i] = permute_bytes<first>(a, b);
        rows[i + distance] = permute_bytes<second>(a, b);
    }
}

/// Bit c of rows[r] becomes bit r of rows[c].
MPISEC_BOTH_SIDES void transpose(std::uint32_t rows[32]) {
    swap_whole_bytes<16, 0x5410, 0x7632>(rows);
    swap_whole_bytes<8, 0x6240, 0x7351>(rows);
    swap_bits<4>(rows, 0x0f0f0f0f);
    swap_bits<2>(rows, 0x33333333);
    swap_bits<1>(rows, 0x55555555);
}

}  // namespace mpisec::gpu
