// Long vectors go through a node's shared memory in turns, of so many bytes of each rank's vector that the
// memory is bounded. All nodes take the same turns.
#pragma once

#include <algorithm>

#include "coll/partial.hpp"
#include "fabric/topology.hpp"

namespace mpisec::coll {

inline constexpr std::size_t turn_bytes = 4 * 1024 * 1024;

/// How many turns; slice() tells of what. None without data.
inline int turns(const fabric::Topology& topology, std::size_t bytes) {
    if (bytes == 0) return 0;
    if (topology.nodes() == topology.ranks()) return 1;  // no memory is shared
    return static_cast<int>((bytes + turn_bytes - 1) / turn_bytes);
}

inline std::size_t largest_slice(std::size_t bytes, std::size_t element, int slices) {
    const std::size_t n = static_cast<std::size_t>(std::max(slices, 1));
    return (bytes / element + n - 1) / n * element;
}

}  // namespace mpisec::coll
