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

/// `bytes` of a block at any address; what is missing of 16 is zero.
MPISEC_BOTH_SIDES Block load_block(const std::uint8_t* from, std::uint32_t bytes) {
    if (bytes == 16 && reinterpret_cast<std::uintptr_t>(from) % 16 == 0)
        return *reinterpret_cast<const Block*>(from);
    Block block{};
    MPISEC_UNROLL
    for (unsigned i = 0; i < 16; ++i)
        if (i < bytes) block.word[i / 4] |= std::uint32_t{from[i]} << (8 * (i % 4));
    return block;
}

MPISEC_BOTH_SIDES void store_block(std::uint8_t* to, const Block& block, std::uint32_t bytes) {
    if (bytes == 16 && reinterpret_cast<std::uintptr_t>(to) % 16 == 0) {
        *reinterpret_cast<Block*>(to) = block;
        return;
    }
    MPISEC_UNROLL
    for (unsigned i = 0; i < 16; ++i)
        if (i < bytes) to[i] = static_cast<std::uint8_t>(block.word[i / 4] >> (8 * (i % 4)));
}

}  // namespace mpisec::gpu
