// GHASH of 32 blocks at a time as a product of matrices of bits, which some GPUs multiply by themselves (sm_80 and sm_90:
// `mma` with the operation and.popc). Multiplication by a power of H is linear over bits: 32 blocks, a window, are a
// column of 4096 bits; the matrices of 32 powers side by side have 128 rows; and the parities of the ones that
// rows and column share are the bits of the window's hash.
//
// A warp takes a chunk, and each lane one of its windows. Groups of eight windows are multiplied by the same matrices, with 32-bit
// counts of common ones; the warp's votes then collect the parities. No address and no branch depends on a bit.
#pragma once

#include "gpu/ghash.hpp"

namespace mpisec::gpu {

inline constexpr std::uint32_t window_blocks = 32, group_windows = 8;
/// Products of 16 × 256 bits by 256 × 8, added up.
inline constexpr unsigned matrix_steps = window_blocks / 2;
inline constexpr unsigned row_tiles = 8;  ///< of 16 rows
inline constexpr unsigned half_tiles = 2 * row_tiles;
inline constexpr unsigned lanes_of_warp = 32, warps_of_block = 4;

/// What each lane has of the matrices, in the order of the instruction's registers (PTX ISA, "Matrix Fragments for
/// mma.m16n8k256"). A window's blocks come in the order in which lanes load them: in step s lane l has words 2 (s % 2) and the
/// next one of block 4 (s / 2) + l % 4.
struct MatrixFragment {
    std::uint32_t word[4];  ///< rows l / 4 and l / 4 + 8 of the first word, and again of the second
};
struct Matrices {
    MatrixFragment of[matrix_steps][row_tiles][lanes_of_warp];
};

/// Bits 4 r + c: row r, of eight, of each half of a tile, for window 2 c (or 2 c + 1) of a group. Row r of half h is bit 4 r + h % 4 of word
/// h / 4 of the hash.
struct Parities {
    std::uint32_t of[half_tiles];
};

MPISEC_BOTH_SIDES Block window_of(const Parities& parities, unsigned c) {
    Block block{};
    MPISEC_UNROLL
    for (unsigned half = 0; half < half_tiles; ++half)
        block.word[half / 4] |= ((parities.of[half] >> c) & 0x11111111u) << (half % 4);
    return block;
}

// parities_for(): of the window of this lane, which is in one of `groups`. `load(group, window, block)` gives a block of the chunk.
#if defined(__CUDA_ARCH__)

struct Counts {
    std::int32_t of[4];  ///< rows l / 4 and l / 4 + 8, each of windows 2 (l % 4) and the next one
};

__device__ __forceinline__ void multiply_bits(Counts& counts, const MatrixFragment& rows, std::uint32_t first,
                                              std::uint32_t second) {
#if __CUDA_ARCH__ >= 800 && __CUDA_ARCH__ < 1000
    asm("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, "
        "%9}, {%0, %1, %2, %3};"
        : "+r"(counts.of[0]), "+r"(counts.of[1]), "+r"(counts.of[2]), "+r"(counts.of[3])
        : "r"(rows.word[0]), "r"(rows.word[1]), "r"(rows.word[2]), "r"(rows.word[3]), "r"(first),
          "r"(second));
#endif
}

/// Of one group: lane 2 h + i has the parities of half h for windows of even (i: 0) or odd numbers.
__device__ __forceinline__ std::uint32_t votes_on(const Counts (&counts)[row_tiles], std::uint32_t lane) {
    std::uint32_t mine = 0;
    MPISEC_UNROLL
    for (unsigned k = 0; k < 2 * half_tiles; ++k) {
        const std::uint32_t all = __ballot_sync(~0u, counts[k / 4].of[k % 4] & 1);
        if (k == lane) mine = all;
    }
    return mine;
}

template <class Load>
__device__ __forceinline__ Parities parities_for(std::uint32_t lane, const Matrices& matrices,
                                                 std::uint32_t groups, const Load& load) {
    constexpr unsigned at_once = 4;
    // One word more than a group has, so that lanes of different groups read other banks.
    __shared__ std::uint32_t votes[warps_of_block][lanes_of_warp / group_windows][lanes_of_warp + 1];
    auto& of_chunk = votes[threadIdx.x / lanes_of_warp];
    MPISEC_KEEP_ROLLED
    for (std::uint32_t first = 0; first < groups; first += at_once) {
        Counts counts[at_once][row_tiles] = {};
        MPISEC_KEEP_ROLLED
        for (unsigned pair = 0; pair < matrix_steps / 2; ++pair) {
            Block blocks[at_once];
            MPISEC_UNROLL
            for (unsigned i = 0; i < at_once; ++i) blocks[i] = load(first + i, lane / 4, 4 * pair + lane % 4);
            MPISEC_UNROLL
            for (unsigned k = 0; k < 2 * row_tiles; ++k) {
                const unsigned tile = k % row_tiles, word = k / row_tiles * 2;
                const MatrixFragment rows = matrices.of[2 * pair + word / 2][tile][lane];
                MPISEC_UNROLL
                for (unsigned i = 0; i < at_once; ++i)
                    multiply_bits(counts[i][tile], rows, blocks[i].word[word], blocks[i].word[word + 1]);
            }
        }
        MPISEC_UNROLL
        for (unsigned i = 0; i < at_once; ++i) of_chunk[first + i][lane] = votes_on(counts[i], lane);
    }
    __syncwarp();
    Parities parities;
    MPISEC_UNROLL
    for (unsigned half = 0; half < half_tiles; ++half)
        parities.of[half] = of_chunk[lane / group_windows][2 * half + lane % 2];
    return parities;
}

/// Exclusive or of what the lanes have.
__device__ __forceinline__ void accumulate_of_warp(Element& sum, const Element& mine, std::uint32_t lane) {
#if __CUDA_ARCH__ >= 800
    MPISEC_UNROLL
    for (unsigned i = 0; i < 4; ++i) {
        const std::uint32_t all = __reduce_xor_sync(~0u, mine.word[i]);
        if (lane == i) sum.word[i] ^= all;
    }
#endif
}

#else

/// The same by the definition of the instruction, with what the other lanes would have: those of the bits that this lane needs.
template <class Load>
inline Parities parities_for(std::uint32_t lane, const Matrices& matrices, std::uint32_t groups,
                             const Load& load) {
    Parities parities{};
    const std::uint32_t group = lane / group_windows, window = lane % group_windows;
    if (group >= groups) return parities;
    Block column[window_blocks];
    for (std::uint32_t i = 0; i < window_blocks; ++i) column[i] = load(group, window, i);
    for (unsigned k = 0; k < half_tiles * 8; ++k) {
        const unsigned half = k / 8, row = k % 8;
        std::uint32_t common = 0;
        for (unsigned step = 0; step < matrix_steps; ++step)
            for (unsigned j = 0; j < 4; ++j) {
                const MatrixFragment& rows = matrices.of[step][half / 2][4 * row + j];
                const Block& block = column[step / 2 * 4 + j];
                common ^= (rows.word[half % 2] & block.word[step % 2 * 2]) ^
                          (rows.word[2 + half % 2] & block.word[step % 2 * 2 + 1]);
            }
        parities.of[half] |= static_cast<std::uint32_t>(__builtin_parity(common)) << (4 * row + window / 2);
    }
    return parities;
}

inline void accumulate_of_warp(Element& sum, const Element& mine, std::uint32_t) {
    sum = add(sum, mine);
}

#endif

}  // namespace mpisec::gpu
