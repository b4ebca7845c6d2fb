// Which cores are spare. This is found with the kernel's own files and calls, not with hwloc: this code ends up in a library that is
// preloaded into programs whose MPI brings an hwloc of its own (another version, often inside libmpi), Debian's static archive of hwloc
// needs libudev at run time, and loading its topology costs 10 ms where this costs less than 1. The tests compare the result with hwloc.
#include "engine/placement.hpp"

#include <sched.h>

#include <algorithm>
#include <thread>

#include "base/signals_blocked.hpp"

namespace mpisec::engine {
namespace {

constexpr unsigned max_spare_workers = 4;
constexpr unsigned max_cpus = 16 * 1024;

using CpuMask = std::vector<bool>;  // by operating-system index of the hardware thread

/// The hardware threads that the calling thread may run on; empty when the system does not say.
CpuMask affinity() {
    const std::size_t bytes = CPU_ALLOC_SIZE(max_cpus);
    std::vector<std::uint64_t> words(bytes / sizeof(std::uint64_t));
    auto* mask = reinterpret_cast<cpu_set_t*>(words.data());
    if (sched_getaffinity(0, bytes, mask) != 0) return {};
    CpuMask cpus(max_cpus);
    for (unsigned cpu = 0; cpu < max_cpus; ++cpu) cpus[cpu] = CPU_ISSET_S(cpu, bytes, mask);
    return cpus;
}

/// What this process could run on if nobody had bound it: asking for all CPUs gives those that its cpuset (a batch system's or container's
/// share of the node) contains. Done on a thread of its own, so that the caller's binding stays.
CpuMask unbound_affinity() {
    CpuMask cpus;
    const SignalsBlocked signals;
    try {
        std::thread([&] {
            std::vector<std::uint64_t> all(CPU_ALLOC_SIZE(max_cpus) / sizeof(std::uint64_t),
                                           ~std::uint64_t{0});
            sched_setaffinity(0, CPU_ALLOC_SIZE(max_cpus), reinterpret_cast<cpu_set_t*>(all.data()));
            cpus = affinity();
        }).join();
    } catch (const std::system_error&) {  // no thread can be made: then there will be no workers either
    }
    return cpus;
}

std::vector<unsigned> indices(const CpuMask& cpus) {
    std::vector<unsigned> all;
    for (unsigned cpu = 0; cpu < cpus.size(); ++cpu)
        if (cpus[cpu]) all.push_back(cpu);
    return all;
}

/// One hardware thread of each core; cores near one memory are side by side.
std::vector<HardwareThread> cores_of(const std::vector<HardwareThread>& threads) {
    std::vector<HardwareThread> cores;
    for (const HardwareThread& thread : threads)
        if (std::none_of(cores.begin(), cores.end(),
                         [&](const HardwareThread& other) { return other.core == thread.core; }))
            cores.push_back(thread);
    std::stable_sort(cores.begin(), cores.end(), [](const HardwareThread& one, const HardwareThread& other) {
        return one.node < other.node;
    });
    return cores;
}

/// How many ranks of the node run on this rank's `own` cores, of `all` cores that the job has here. Each rank sees only its own binding;
/// launchers bind evenly, so the other ranks are assumed to have as many cores elsewhere: unbound ranks all share, ranks with four cores
/// each do not share.
unsigned sharers(std::size_t own, std::size_t all, unsigned ranks) {
    return static_cast<unsigned>(
        std::min<std::size_t>(ranks, (ranks * own + all - 1) / std::max<std::size_t>(all, 1)));
}

}  // namespace

Placement place(const Surroundings& surroundings, int setting, unsigned ranks_on_node,
                unsigned rank_on_node) {
    std::vector<HardwareThread> own = cores_of(surroundings.usable);
    const unsigned ranks = std::max(1u, sharers(own.size(), std::max(own.size(), surroundings.cores_of_job),
                                                std::max(1u, ranks_on_node)));
    // A rank that is alone on its cores has its workers near the memory that it has used so far.
    if (ranks == 1 && surroundings.node)
        std::stable_partition(own.begin(), own.end(),
                              [&](const HardwareThread& core) { return core.node == *surroundings.node; });

    // Among ranks that share cores, rank i takes the i-th part, whose first core is for the rank itself. So a rank's workers are on one
    // memory as far as possible.
    Placement placement{static_cast<unsigned>(std::max(setting, 0)), {}};
    const std::size_t mine = rank_on_node % ranks;
    std::vector<HardwareThread> spare;
    if (own.size() > ranks)
        spare.assign(own.begin() + static_cast<std::ptrdiff_t>(mine * own.size() / ranks + 1),
                     own.begin() + static_cast<std::ptrdiff_t>((mine + 1) * own.size() / ranks));
    for (const HardwareThread& core : spare) placement.cores.push_back(core.cpu);
    if (setting < 0) {
        if (placement.cores.size() > max_spare_workers) placement.cores.resize(max_spare_workers);
        placement.workers = static_cast<unsigned>(placement.cores.size());
        return placement;
    }
    // If there are more workers than cores: the other hardware threads of these cores, but not those of the cores on which ranks run.
    for (const HardwareThread& thread : surroundings.usable)
        for (const HardwareThread& core : spare)
            if (placement.cores.size() < placement.workers && thread.core == core.core &&
                thread.cpu != core.cpu)
                placement.cores.push_back(thread.cpu);
    return placement;
}

Placement place_workers(int setting, unsigned ranks_on_node, unsigned rank_on_node) {
    if (setting == 0) return {0, {}};
    const char* const system = "/sys/devices/system";
    const CpuMask bound_to = affinity(), could_use = unbound_affinity();
    Surroundings found;
    found.usable = topology_of(indices(bound_to), system);
    found.cores_of_job = could_use == bound_to ? 0 : cores_of(topology_of(indices(could_use), system)).size();
    const int here = sched_getcpu();
    for (const HardwareThread& thread : found.usable)
        if (here >= 0 && thread.cpu == static_cast<unsigned>(here)) found.node = thread.node;
    return place(found, setting, ranks_on_node, rank_on_node);
}

}  // namespace mpisec::engine
