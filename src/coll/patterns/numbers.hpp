// What the ranks of a node tell each other: sizes and neighbours that only one of them knows.
#pragma once

#include <vector>

#include "fabric/fabric.hpp"
#include "fabric/task.hpp"

namespace mpisec::coll {

/// Each rank of the node gives `mine`, which is placed from `at` on; all ranks get all numbers in `all`, on whose size they
/// must have agreed before. The numbers go through shared memory, so they can be trusted as far as node peers can. Where
/// there is no shared memory, the fabric fails, `complete` becomes false and the node peers' numbers are
/// zeros: there must then be no copies between rooms whose sizes come from different ranks.
fabric::Task share_numbers(fabric::Fabric& fabric, std::vector<std::size_t> mine, std::size_t at,
                           std::vector<std::size_t>& all, bool* complete = nullptr);

}  // namespace mpisec::coll
