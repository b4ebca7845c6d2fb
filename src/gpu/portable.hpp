// What lets one source be compiled by nvcc for a GPU and by the host's compiler.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define MPISEC_BOTH_SIDES __host__ __device__ __forceinline__
#define MPISEC_UNROLL _Pragma("unroll")
#define MPISEC_KEEP_ROLLED _Pragma("unroll 1")
#else
#define MPISEC_BOTH_SIDES [[gnu::always_inline]] inline
#define MPISEC_UNROLL
#define MPISEC_KEEP_ROLLED
#endif

namespace mpisec::gpu {

MPISEC_BOTH_SIDES std::uint32_t swap_bytes(std::uint32_t word) {
#if defined(__CUDA_ARCH__)
    return __byte_perm(word, 0, 0x0123);
#else
    return __builtin_bswap32(word);
#endif
}

/// Whether a function of three bits (lut()) has the product of `factors` (4: a, 2: b, 1: c) in its algebraic normal form.
constexpr bool has_term(unsigned table, unsigned factors) {
    bool odd = false;
    for (unsigned i = 0; i < 8; ++i)
        if ((i & ~factors) == 0 && (table >> i & 1)) odd = !odd;
    return odd;
}

/// Any function of three bits, for 32 at once: bit 4 a + 2 b + c of `table` is its value.
template <unsigned table>
MPISEC_BOTH_SIDES std::uint32_t lut(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    std::uint32_t value = 0;
#if defined(__CUDA_ARCH__)
    asm("lop3.b32 %0, %1, %2, %3, %4;" : "=r"(value) : "r"(a), "r"(b), "r"(c), "n"(table));
#else
    if constexpr (has_term(table, 0)) value = ~value;
    if constexpr (has_term(table, 4)) value ^= a;
    if constexpr (has_term(table, 2)) value ^= b;
    if constexpr (has_term(table, 1)) value ^= c;
    if constexpr (has_term(table, 6)) value ^= a & b;
    if constexpr (has_term(table, 5)) value ^= a & c;
    if constexpr (has_term(table, 3)) value ^= b & c;
    if constexpr (has_term(table, 7)) value ^= a & b & c;
#endif
    return value;
}
MPISEC_BOTH_SIDES std::uint32_t parity(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    return lut<0x96>(a, b, c);
}
/// The bits of `first` where `mask` is set, of `second` where it is not.
MPISEC_BOTH_SIDES std::uint32_t choose(std::uint32_t mask, std::uint32_t first, std::uint32_t second) {
    return lut<0xca>(mask, first, second);
}

/// Four of the eight bytes of `a` and `b`, counted from a's lowest: a hexadecimal digit of `which` names each.
template <unsigned which>
MPISEC_BOTH_SIDES std::uint32_t permute_bytes(std::uint32_t a, std::uint32_t b) {
#if defined(__CUDA_ARCH__)
    return __byte_perm(a, b, which);
#else
    const std::uint64_t both = std::uint64_t{b} << 32 | a;
    std::uint32_t chosen = 0;
    for (unsigned i = 0; i < 4; ++i)
        chosen |= static_cast<std::uint32_t>(both >> (8 * (which >> (4 * i) & 7)) & 0xff) << (8 * i);
    return chosen;
#endif
}

/// Exclusive or into memory that other threads of the GPU change too.
MPISEC_BOTH_SIDES void exclusive_or(std::uint32_t* place, std::uint32_t word) {
#if defined(__CUDA_ARCH__)
    atomicXor(place, word);
#else
    *place ^= word;
#endif
}

/// A block of 16 bytes as little-endian words.
struct alignas(16) Block {
    std::uint32_t word[4];
};

MPISEC_BOTH_SIDES bool is_aligned(const std::uint8_t* address) {
    return reinterpret_cast<std::uintptr_t>(address) % sizeof(Block) == 0;
}

/// `bytes` of a block at any address; what is missing of 16 is zero.
MPISEC_BOTH_SIDES Block load_block(const std::uint8_t* from, std::uint32_t bytes) {
    if (bytes == 16 && is_aligned(from)) return *reinterpret_cast<const Block*>(from);
    Block block{};
    MPISEC_UNROLL
    for (unsigned i = 0; i < 16; ++i)
        if (i < bytes) block.word[i / 4] |= std::uint32_t{from[i]} << (8 * (i % 4));
    return block;
}

MPISEC_BOTH_SIDES void store_block(std::uint8_t* to, const Block& block, std::uint32_t bytes) {
    if (bytes == 16 && is_aligned(to)) {
        *reinterpret_cast<Block*>(to) = block;
        return;
    }
    MPISEC_UNROLL
    for (unsigned i = 0; i < 16; ++i)
        if (i < bytes) to[i] = static_cast<std::uint8_t>(block.word[i / 4] >> (8 * (i % 4)));
}

}  // namespace mpisec::gpu
