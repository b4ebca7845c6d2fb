// Which cores are spare, as a function of what the machine and the job look like.
#pragma once

#include <optional>

#include "engine/engine.hpp"
#include "engine/topology.hpp"

namespace mpisec::engine {

/// What place_workers() finds out.
struct Surroundings {
    std::vector<HardwareThread> usable;  ///< that this process may use
    std::size_t cores_of_job = 0;        ///< on this node, including those that this process is not bound to
    std::optional<unsigned> node;        ///< the NUMA node on which the caller runs
};

Placement place(const Surroundings& surroundings, int setting, unsigned ranks_on_node, unsigned rank_on_node);

}  // namespace mpisec::engine
