// Which cores are spare. From the kernel's own files and calls, not from hwloc: this code ends up in a
// library that is preloaded into programs whose MPI brings an hwloc of its own (another version, often inside
// libmpi), Debian's static archive needs libudev at run time, and loading its topology costs 10 ms where this
// costs less than 1. The tests hold it against hwloc.
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <thread>

#include "engine/engine.hpp"

namespace mpisec::engine {
namespace {

constexpr unsigned max_spare_workers = 4;
constexpr unsigned max_cpus = 16 * 1024;

using CpuMask = std::vector<bool>;  // by operating-system index of the hardware thread

/// What the calling thread may run on; empty when the system does not say.
CpuMask affinity() {
    const std::size_t bytes = CPU_ALLOC_SIZE(max_cpus);
    std::vector<std::uint64_t> words(bytes / sizeof(std::uint64_t));
    auto* mask = reinterpret_cast<cpu_set_t*>(words.data());
    if (sched_getaffinity(0, bytes, mask) != 0) return {};
    CpuMask cpus(max_cpus);
    for (unsigned cpu = 0; cpu < max_cpus; ++cpu) cpus[cpu] = CPU_ISSET_S(cpu, bytes, mask);
    return cpus;
}

/// What this process could run on if nobody had bound it: asking for everything gives all that its cpuset (a
/// batch system's or container's share of the node) contains. On a thread of its own, so that the caller's
/// binding stays.
CpuMask unbound_affinity() {
    CpuMask cpus;
    try {
        std::thread([&] {
            std::vector<std::uint64_t> all(CPU_ALLOC_SIZE(max_cpus) / sizeof(std::uint64_t),
                                           ~std::uint64_t{0});
            sched_setaffinity(0, CPU_ALLOC_SIZE(max_cpus), reinterpret_cast<cpu_set_t*>(all.data()));
            cpus = affinity();
        }).join();
    } catch (const std::system_error&) {  // no thread to be had: then there will be no workers either
    }
    return cpus;
}

/// The lowest-numbered hardware thread on the same core ("0,64" or "0-1": siblings are listed in increasing
/// order).
unsigned first_sibling(unsigned cpu) {
    const std::string path =
        "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list";
    char text[32];
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return cpu;
    const ssize_t n = read(file, text, sizeof text);
    close(file);
    unsigned first = cpu;
    if (n > 0) std::from_chars(text, text + n, first);
    return first;
}

/// One hardware thread of each core in `cpus`.
std::vector<unsigned> cores_of(const CpuMask& cpus) {
    std::vector<unsigned> cores, seen;
    for (unsigned cpu = 0; cpu < cpus.size(); ++cpu) {
        if (!cpus[cpu]) continue;
        const unsigned sibling = first_sibling(cpu);
        if (std::find(seen.begin(), seen.end(), sibling) != seen.end()) continue;
        seen.push_back(sibling);
        cores.push_back(cpu);
    }
    return cores;
}

/// How many ranks of the node run on this rank's `own` cores, of `all` that the job has here. Each rank sees
/// only its own binding; launchers bind evenly, so others are assumed to have as much elsewhere: unbound
/// ranks all share, ranks with four cores each do not share.
unsigned sharers(std::size_t own, std::size_t all, unsigned ranks) {
    return static_cast<unsigned>(
        std::min<std::size_t>(ranks, (ranks * own + all - 1) / std::max<std::size_t>(all, 1)));
}

}  // namespace

Placement place_workers(int setting, unsigned ranks_on_node, unsigned rank_on_node) {
    if (setting == 0) return {0, {}};
    const CpuMask bound_to = affinity(), could_use = unbound_affinity();
    const std::vector<unsigned> own = cores_of(bound_to);
    const std::size_t all =
        could_use == bound_to ? own.size() : std::max(own.size(), cores_of(could_use).size());
    const unsigned ranks = std::max(1u, sharers(own.size(), all, std::max(1u, ranks_on_node)));

    // Among those that share, rank i takes the i-th part of what is left when each has one core for itself.
    const std::size_t spare = own.size() > ranks ? own.size() - ranks : 0;
    const std::size_t mine = rank_on_node % ranks;
    const std::size_t first = ranks + mine * spare / ranks;
    const std::size_t last = ranks + (mine + 1) * spare / ranks;

    Placement placement{static_cast<unsigned>(std::max(setting, 0)), {}};
    for (std::size_t core = first; core < last && core < own.size(); ++core)
        placement.cores.push_back(own[core]);
    if (setting < 0) {
        if (placement.cores.size() > max_spare_workers) placement.cores.resize(max_spare_workers);
        placement.workers = static_cast<unsigned>(placement.cores.size());
    }
    return placement;
}

}  // namespace mpisec::engine
