// The algorithms of each collective, defined in its own file.
#pragma once

#include <vector>

#include "coll/collective.hpp"

namespace mpisec::coll {

const std::vector<Entry>& barrier_algorithms();
const std::vector<Entry>& bcast_algorithms();
const std::vector<Entry>& gather_algorithms();
const std::vector<Entry>& scatter_algorithms();
const std::vector<Entry>& allgather_algorithms();
const std::vector<Entry>& alltoall_algorithms();
const std::vector<Entry>& reduce_algorithms();
const std::vector<Entry>& allreduce_algorithms();
const std::vector<Entry>& reduce_scatter_algorithms();
const std::vector<Entry>& scan_algorithms();
const std::vector<Entry>& exscan_algorithms();
const std::vector<Entry>& neighbor_allgather_algorithms();
const std::vector<Entry>& neighbor_alltoall_algorithms();

}  // namespace mpisec::coll
