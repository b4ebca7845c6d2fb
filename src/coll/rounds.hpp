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
        fabric::Plain bytes;
        std::uint32_t index;  ///< of the box
    };
    struct In {
        int from;
        fabric::PlainRoom room;
        std::uint32_t index;
    };
    std::vector<Out> out;
    std::vector<In> in;
};

/// `round(i)` is asked for each round when it begins; two are under way at a time. Rooms for boxes are used
/// again, so they take what two rounds need and not what all do.
fabric::Task in_rounds(fabric::Fabric& fabric, int rounds, std::function<Round(int)> round);

}  // namespace mpisec::coll
