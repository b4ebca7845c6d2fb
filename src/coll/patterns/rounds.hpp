// Rounds of single messages, each of which is sealed if it goes to another node. While what came in one round
// is opened, the messages of the next travel.
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
    /// What a round consists of, asked when it begins.
    std::function<Round(int)> round;
    /// Before the round begins: its plaintext has to be there after. May be empty.
    std::function<fabric::Task(int)> before = {};
    /// When the round is over; the next one is under way, but none of its sealed blocks is opened. May be
    /// empty.
    std::function<fabric::Task(int)> after = {};
};

/// Two rounds are under way at a time. Rooms for sealed blocks are used again, so they take what two rounds
/// need and not what all do.
fabric::Task in_rounds(fabric::Fabric& fabric, Rounds rounds);
fabric::Task in_rounds(fabric::Fabric& fabric, int count, std::function<Round(int)> round);

}  // namespace mpisec::coll
