// Long vectors go through a node's shared memory in chunks. A chunk has a limited number of bytes of each rank's vector,
// so that the memory is bounded and stays in caches. All nodes have the same chunks; slice() tells where in the vector
// each of them lies.
#pragma once

#include "coll/patterns/range.hpp"

namespace mpisec::coll {

#ifdef MPISEC_TINY_CHUNKS  // tests get through many of them with little data
inline constexpr std::size_t chunk_bytes = 64;
#else
inline constexpr std::size_t chunk_bytes = 1024 * 1024;
#endif

/// None without data. Where every rank has a node to itself, a chunk has chunk_bytes for each of them, because the ranks share it out.
inline int chunks(const fabric::Topology& topology, std::size_t bytes) {
    const bool shared = topology.nodes() < topology.ranks();
    const std::size_t most = shared ? chunk_bytes : chunk_bytes * static_cast<std::size_t>(topology.nodes());
    return static_cast<int>((bytes + most - 1) / most);
}

}  // namespace mpisec::coll
