// The rank of each node that carries for the node in a collective with a root: the root for its own node, the first
// rank for any other.
#pragma once

#include "coll/patterns/nodes.hpp"

namespace mpisec::coll {

/// Nodes have places: 0 is the root's, the others follow by number, wrapping around at the end.
class Leaders {
  public:
    Leaders(const fabric::Topology& topology, int root) : topology_(topology), root_(root) {}

    int node(int place) const { return node_after(topology_, topology_.node(root_), place); }
    int place(int node) const { return node_after(topology_, node, -topology_.node(root_)); }
    int rank(int place) const { return place == 0 ? root_ : topology_.members(node(place)).front(); }
    bool lead(int rank) const { return this->rank(place(topology_.node(rank))) == rank; }

  private:
    const fabric::Topology& topology_;
    int root_;
};

}  // namespace mpisec::coll
