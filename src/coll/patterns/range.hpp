// Parts of vectors.
#pragma once

#include <cstddef>

#include "fabric/fabric.hpp"

namespace mpisec::coll {

/// Bytes of a vector; whole elements.
struct Range {
    std::size_t offset = 0, size = 0;

    std::size_t end() const { return offset + size; }
    fabric::PlaintextBuffer of(fabric::PlaintextBuffer vector) const { return vector.subspan(offset, size); }
    fabric::Plaintext of(fabric::Plaintext vector) const { return vector.subspan(offset, size); }
    /// A part of this part.
    Range part(Range inner) const { return {offset + inner.offset, inner.size}; }
};

/// The i-th of almost equal slices of a vector.
inline Range slice(std::size_t bytes, std::size_t element, int slices, int i) {
    const std::size_t elements = bytes / element, n = static_cast<std::size_t>(slices);
    auto edge = [&](int k) { return elements * static_cast<std::size_t>(k) / n * element; };
    return {edge(i), edge(i + 1) - edge(i)};
}

inline std::size_t largest_slice(std::size_t bytes, std::size_t element, int slices) {
    const auto n = static_cast<std::size_t>(slices);
    return (bytes / element + n - 1) / n * element;
}

}  // namespace mpisec::coll
