// Finding one's way from node to node.
#pragma once

#include "fabric/topology.hpp"

namespace mpisec::coll {

/// The node `distance` (less than there are nodes, either way) further, round the end.
inline int node_after(const fabric::Topology& topology, int node, int distance) {
    return (node + distance + topology.nodes()) % topology.nodes();
}

/// A rank's peer on a node: the one with its place there, round the end where there are fewer.
inline int peer_on(const fabric::Topology& topology, int rank, int node) {
    return topology.members(node)[static_cast<std::size_t>(topology.local(rank) % topology.node_size(node))];
}

/// Who on node `at` seals what goes to the node `other`, and opens what comes from there, when that is one
/// sealed block.
inline int clerk(const fabric::Topology& topology, int at, int other) {
    return topology.members(at)[static_cast<std::size_t>(other % topology.node_size(at))];
}

}  // namespace mpisec::coll
