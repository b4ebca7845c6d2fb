// Single messages along the edges of a pattern: sent as they are inside a node, and each in a sealed block of its own
// to another node.
#pragma once

#include <unordered_map>

#include "fabric/fabric.hpp"
#include "fabric/task.hpp"

namespace mpisec::coll {

/// Sealed blocks are numbered by the pair of ranks: the k-th message from a to b is a's sealed block k * p +
/// b. An algorithm that uses Edges therefore seals nothing else.
class Edges {
  public:
    explicit Edges(fabric::Fabric& fabric) : fabric_(fabric) {}

    bool few_parts() const { return fabric_.few_parts(); }
    bool leaves_node(int peer) const { return !fabric_.topology().same_node(fabric_.rank(), peer); }

    /// Messages under way, to be finished by co_await of finish(). What is sent must not change until then.
    struct Sending {
        fabric::Pending pending;
        fabric::CiphertextBuffer sealed_block;  ///< empty inside a node
    };
    struct Receiving {
        fabric::Pending pending;
        fabric::PlaintextBuffer room;
        fabric::CiphertextBuffer sealed_block;  ///< empty inside a node
        fabric::SealedBlock name;
    };
    Sending send(int to, fabric::Plaintext bytes);
    Receiving receive(int from, fabric::PlaintextBuffer room);
    fabric::Task finish(Sending sending);
    fabric::Task finish(Receiving receiving);

    /// Sends and receives at once.
    fabric::Task exchange(int to, fabric::Plaintext bytes, int from, fabric::PlaintextBuffer room);

  private:
    std::uint64_t index(std::uint64_t count, int receiver) const {
        return count * static_cast<std::uint64_t>(fabric_.topology().ranks()) +
               static_cast<std::uint64_t>(receiver);
    }

    struct Count {
        std::uint64_t sent = 0, received = 0;
    };

    fabric::Fabric& fabric_;
    std::unordered_map<int, Count> messages_;  ///< by rank; only ranks that it exchanges messages with
};

}  // namespace mpisec::coll
