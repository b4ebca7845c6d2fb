// The edges of a neighbourhood that touch a node. A rank knows its own edges; the ranks of a node tell each other
// theirs, and then know all edges between their node and any other. Both ends of an edge know it and
// its size, and matching follows the order in the ranks' lists: so both nodes put the blocks between them in
// the same order, and need not tell each other anything.
#pragma once

#include <vector>

#include "coll/collective.hpp"

namespace mpisec::coll {

/// One edge.
struct Link {
    int from, to;
    std::size_t bytes;
    std::size_t place;   ///< in the list of the rank that is on this node
    std::size_t offset;  ///< of the block in the node's shared memory
};

/// Edges that leave the node's ranks and those that enter them, in the order of other node, from, to, place.
/// This node counts as the first other node: edges inside it are in both lists, at the same offset.
struct Links {
    std::vector<Link> out, in;
    std::size_t out_bytes = 0, in_bytes = 0, inside_bytes = 0;
};

/// `once`: all blocks of one rank for one node are the same, and lie in shared memory once. Where there is no
/// memory to share them, there are no links, and the fabric fails.
fabric::Task make_links(fabric::Fabric& fabric, const Call& call, bool once, Links& links);

}  // namespace mpisec::coll
