// Ordinary all-gathers among a few ranks, on ciphertext (between nodes) or on plaintext (within a node), of which
// the encrypted ones are built.
#pragma once

#include <functional>
#include <vector>

#include "fabric/fabric.hpp"
#include "fabric/task.hpp"

namespace mpisec::coll {

/// Members in an order that all of them know, and how many bytes each contributes.
struct Group {
    std::vector<int> ranks;
    std::vector<std::size_t> bytes;
    int me;  ///< index in ranks

    int size() const { return static_cast<int>(ranks.size()); }
    int wrap(int index) const { return (index % size() + size()) % size(); }
    std::size_t total() const;
};

/// Called when member `index`'s contribution has arrived and lies in `part`: once for each member but
/// the caller, while the next messages are already under way.
template <class Room>
using Arrived = std::function<void(int index, Room part)>;

/// Ring: size - 1 rounds, each member's contribution travels alone. `room` holds total() bytes; the caller's
/// own contribution is at its front, those of its predecessors follow.
fabric::Task ring(fabric::Fabric& fabric, Group group, fabric::CiphertextBuffer room,
                  Arrived<fabric::CiphertextBuffer> arrived);
fabric::Task ring(fabric::Fabric& fabric, Group group, fabric::PlaintextBuffer room,
                  Arrived<fabric::PlaintextBuffer> arrived);

/// Dissemination (Bruck, Ho, Kipnis, Upfal, Weathersby 1997): ceil(lg size) rounds for any size; as many as
/// recursive doubling, and for powers of two also as many bytes. The caller's own contribution is at
/// the front of `room`, those of its successors follow.
fabric::Task doubling(fabric::Fabric& fabric, Group group, fabric::CiphertextBuffer room,
                      Arrived<fabric::CiphertextBuffer> arrived);
fabric::Task doubling(fabric::Fabric& fabric, Group group, fabric::PlaintextBuffer room,
                      Arrived<fabric::PlaintextBuffer> arrived);

}  // namespace mpisec::coll
