// A range of sizes or numbers, as used in rules.
#pragma once

#include <cstdint>
#include <limits>

namespace mpisec::coll {

/// Both ends belong to it.
struct Interval {
    std::uint64_t least = 0, most = std::numeric_limits<std::uint64_t>::max();
    bool has(std::uint64_t n) const { return least <= n && n <= most; }
    bool operator==(const Interval&) const = default;
};

}  // namespace mpisec::coll
