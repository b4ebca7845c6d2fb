// All-to-alls that merge what goes from node to node (alltoall_nodes.cpp, alltoall_bruck.cpp).
#pragma once

#include "coll/collective.hpp"

namespace mpisec::coll {

fabric::Task alltoall_node(fabric::Fabric& fabric, const Call& call);
fabric::Task alltoall_pairs(fabric::Fabric& fabric, const Call& call);
/// Serves only calls with equal blocks: ranks on the way would not know other sizes.
fabric::Task alltoall_bruck(fabric::Fabric& fabric, const Call& call);

}  // namespace mpisec::coll
