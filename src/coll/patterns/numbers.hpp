// What the ranks of a node tell each other: sizes and neighbours that only one of them knows.
#pragma once

#include <vector>

#include "fabric/fabric.hpp"
#include "fabric/task.hpp"

namespace mpisec::coll {

/// Each rank of the node gives `mine` to stand from `at` on; all get all of them in `all`, of whose size they
/// must agree before. Goes through shared memory, so these numbers can be trusted as node peers are. Where
/// there is no shared memory the fabric fails, `complete` becomes false and the node peers' numbers are
/// zeros: no copies between rooms then whose sizes come from different ranks.
fabric::Task share_numbers(fabric::Fabric& fabric, std::vector<std::size_t> mine, std::size_t at,
                           std::vector<std::size_t>& all, bool* complete = nullptr);

}  // namespace mpisec::coll
