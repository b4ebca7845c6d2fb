// Doubling between nodes when nodes differ in size: in each round every rank receives from one rank of the
// node at the round's distance, and sends to the ranks that receive from it.
#pragma once

#include <algorithm>
#include <vector>

#include "coll/patterns/nodes.hpp"
#include "fabric/topology.hpp"

namespace mpisec::coll {

class BetweenNodes {
  public:
    BetweenNodes(const fabric::Topology& topology, int rank) : topology_(topology), rank_(rank) {}

    int node_at(int distance) const { return node_after(topology_, topology_.node(rank_), distance); }
    /// The number of nodes whose data a round of this distance hands over.
    int count(int distance) const { return std::min(distance, topology_.nodes() - distance); }
    int source(int distance) const { return peer_on(topology_, rank_, node_at(distance)); }
    std::vector<int> destinations(int distance) const {
        std::vector<int> all;
        for (int rank : topology_.members(node_at(-distance)))
            if (peer_on(topology_, rank, topology_.node(rank_)) == rank_) all.push_back(rank);
        return all;
    }
    /// The rank from which the data that `holder` has of node `node` came in the first place, when every rank hands on
    /// what it was given.
    int origin(int holder, int node) const {
        int distance = node_after(topology_, node, -topology_.node(holder));
        while (distance > 0) {
            int step = 1;
            while (2 * step <= distance) step *= 2;
            holder = peer_on(topology_, holder, node_after(topology_, topology_.node(holder), step));
            distance -= step;
        }
        return holder;
    }

  private:
    const fabric::Topology& topology_;
    int rank_;
};

}  // namespace mpisec::coll
