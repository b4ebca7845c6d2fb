// Where the ranks' blocks lie in a buffer, and moving sets of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <vector>

#include "fabric/fabric.hpp"

namespace mpisec::coll {

/// One block per rank; bytes and byte offsets, gaps and zeros allowed.
struct Blocks {
    std::uint8_t* base = nullptr;
    std::vector<std::size_t> offset;
    std::vector<std::size_t> size;

    fabric::PlaintextBuffer of(int rank) const {
        const auto r = static_cast<std::size_t>(rank);
        return {base + offset[r], size[r]};
    }
    /// Bytes of each block, if all blocks have the same size.
    std::optional<std::size_t> each() const {
        const bool alike = std::adjacent_find(size.begin(), size.end(), std::not_equal_to<>()) == size.end();
        return alike && !size.empty() ? std::optional(size.front()) : std::nullopt;
    }
    std::size_t bytes(Ranks ranks) const {
        return std::accumulate(ranks.begin(), ranks.end(), std::size_t{0}, [&](std::size_t sum, int rank) {
            return sum + size[static_cast<std::size_t>(rank)];
        });
    }
    /// Copies the blocks of `ranks`, one after the other, to `packed`.
    void gather(fabric::Fabric& fabric, Ranks ranks, fabric::PlaintextBuffer packed) const;
    /// The blocks of `ranks` as one run of bytes: in place if they lie one after the other, else
    /// copied to a room of the fabric.
    fabric::Plaintext pack(fabric::Fabric& fabric, Ranks ranks) const;
    /// Room for what pack() gives on the other side: the blocks' own place when they are one run, else a room
    /// to unpack from.
    fabric::PlaintextBuffer room(fabric::Fabric& fabric, Ranks ranks) const;
    /// After data was received into room(): copies it to the blocks, unless it is there already.
    void unpack(fabric::Fabric& fabric, Ranks ranks, fabric::Plaintext packed) const;

  private:
    bool one_run(Ranks ranks) const;
};

}  // namespace mpisec::coll
