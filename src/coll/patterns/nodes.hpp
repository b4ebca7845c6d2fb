// Which node, and which rank on a node, an algorithm turns to.
#pragma once

#include "fabric/topology.hpp"

namespace mpisec::coll {

/// The node `distance` further on, wrapping around at the end; `distance` is less than the number of nodes, either way.
inline int node_after(const fabric::Topology& topology, int node, int distance) {
    return (node + distance + topology.nodes()) % topology.nodes();
}

/// A rank's peer on a node: the rank with the same place there, wrapping around where there are fewer ranks.
inline int peer_on(const fabric::Topology& topology, int rank, int node) {
    return topology.members(node)[static_cast<std::size_t>(topology.local(rank) % topology.node_size(node))];
}

/// The rank on node `at` that seals what goes to the node `other`, and opens what arrives from there, when that is one
/// sealed block.
inline int clerk(const fabric::Topology& topology, int at, int other) {
    return topology.members(at)[static_cast<std::size_t>(other % topology.node_size(at))];
}

}  // namespace mpisec::coll
