// What the kernels need of a key, and where each packet of a batch begins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.hpp"
#include "gpu/batch.hpp"

namespace mpisec::gpu {

/// 10 or 14; 0 for a key that is none of AES-128's or AES-256's.
unsigned rounds_of(std::size_t key_bytes);

/// Expands a key of 16 or 32 bytes, without tables or branches that depend on it.
void expand_key(std::span<const std::uint8_t> key, KeyMaterial& material);

/// Threads and chunks of a batch.
struct Extent {
    std::uint32_t threads = 0, chunks = 0;
};
/// Sets `thread` and `chunk` of every packet. Fails when a packet is longer than GCM allows or the batch is
/// larger than 1 TiB.
Result<Extent> lay_out(std::span<Packet> packets);

}  // namespace mpisec::gpu
