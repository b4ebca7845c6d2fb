// All-gather in plaintext among the ranks of one node.
#pragma once

#include "coll/blocks.hpp"
#include "coll/patterns/spread.hpp"

namespace mpisec::coll {

enum class Pattern { ring, doubling };

/// Each rank of the node has the blocks that `contribution(local index)` names, and afterwards those of all ranks.
template <class Contribution>
fabric::Task share_inside_node(fabric::Fabric& fabric, const Blocks& blocks, Pattern pattern,
                               Contribution contribution) {
    Group group{fabric.node_peers().list(), {}, fabric.local()};
    if (group.size() == 1) co_return;
    for (int local = 0; local < group.size(); ++local)
        group.bytes.push_back(blocks.bytes(contribution(local)));
    const fabric::PlaintextBuffer room = fabric.plaintext(group.total());
    const std::vector<int> mine = contribution(fabric.local());
    blocks.gather(fabric, mine, room.first(blocks.bytes(mine)));
    auto arrived = [&](int local, fabric::PlaintextBuffer part) {
        blocks.unpack(fabric, contribution(local), part);
    };
    if (pattern == Pattern::ring)
        co_await ring(fabric, group, room, arrived);
    else
        co_await doubling(fabric, group, room, arrived);
}

}  // namespace mpisec::coll
