// Which cores are spare, as a function of what the machine and the job are like.
#pragma once

#include <optional>

#include "engine/engine.hpp"
#include "engine/topology.hpp"

namespace mpisec::engine {

/// What place_workers() finds out.
struct Surroundings {
    std::vector<HardwareThread> usable;  ///< by this process
    std::size_t cores_of_job = 0;        ///< on this node, also those that this process is not bound to
    std::optional<unsigned> node;        ///< of memory, on which the caller runs
};

Placement place(const Surroundings& surroundings, int setting, unsigned ranks_on_node, unsigned rank_on_node);

}  // namespace mpisec::engine
