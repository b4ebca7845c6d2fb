// Rounds of single messages, each of which is sealed if it goes to another node. While the messages received in one
// round are opened, those of the next round travel.
#pragma once

#include <functional>
#include <vector>

#include "fabric/fabric.hpp"
#include "fabric/task.hpp"

namespace mpisec::coll {

struct Round {
    struct Out {
        int to;
        fabric::Plaintext bytes;
        std::uint64_t index;  ///< of the sealed block
    };
    struct In {
        int from;
        fabric::PlaintextBuffer room;
        std::uint64_t index;
    };
    std::vector<Out> out;
    std::vector<In> in;
};

struct Rounds {
    int count;
    /// What a round consists of; called when it begins.
    std::function<Round(int)> round;
    /// Called before the round begins; afterwards the round's plaintext must be there. May be empty.
    std::function<fabric::Task(int)> before = {};
    /// Called when the round is over; the next one is under way, but none of its sealed blocks has been opened. May be
    /// empty.
    std::function<fabric::Task(int)> after = {};
};

/// Two rounds are under way at a time. Rooms for sealed blocks are used again, so they take the memory that two rounds
/// need, not what all rounds do.
fabric::Task in_rounds(fabric::Fabric& fabric, Rounds rounds);
fabric::Task in_rounds(fabric::Fabric& fabric, int count, std::function<Round(int)> round);

}  // namespace mpisec::coll
