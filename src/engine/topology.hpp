// The hardware threads of this machine: which of them share a core, and which memory is near.
#pragma once

#include <string>
#include <vector>

namespace mpisec::engine {

struct HardwareThread {
    unsigned cpu;   ///< the operating system's index
    unsigned core;  ///< the lowest index among the threads that share its core
    unsigned node;  ///< of memory (NUMA); 0 where the system does not say
};

/// The threads of `cpus`, in their order. `system`: "/sys/devices/system", or a copy of it.
std::vector<HardwareThread> topology_of(const std::vector<unsigned>& cpus, const std::string& system);

/// "0-3,8,10-11" as numbers; what cannot be read ends the list.
std::vector<unsigned> numbers_in(const std::string& list);

}  // namespace mpisec::engine
