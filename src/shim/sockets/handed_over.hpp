// Sealed messages that go to the MPI library next, as its connections recognize them (transport/recently_sealed.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

#include "shim/process/process.hpp"

namespace mpisec::shim {

/// To be called before the MPI library is given `n` bytes for another node that this process has just sealed: their ciphertext must be nobody's
/// choice, so never for blocks that are passed on. Any thread.
inline void note_sealed(const std::uint8_t* wire, std::size_t n) {
    if (n >= transport::RecentlySealed::shortest && process.connections_begun.load(std::memory_order_relaxed))
        process.recently_sealed.note(wire, n);
}

}  // namespace mpisec::shim
