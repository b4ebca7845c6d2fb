#include "shim/startup/cores.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "keys/hkdf.hpp"
#include "shim/startup/node_id.hpp"

namespace mpisec::shim {
namespace {

constexpr std::size_t max_cpus = 16 * 1024;

constexpr std::uint64_t threshold = 64 * 1024, threshold_of_shared_cpus = 512 * 1024;

std::uint64_t short_hash(std::span<const std::uint8_t> bytes) {
    const keys::Digest digest = keys::sha256(bytes);
    std::uint64_t mark = 0;
    std::memcpy(&mark, digest.data(), sizeof mark);
    return mark;
}

}  // namespace

Cores cores_here() {
    Cores cores;
    const std::string boot = boot_id();
    if (boot.empty()) return cores;  // else machines that do not tell would count as one
    cores.kernel = short_hash(keys::as_bytes(boot));
    const std::size_t bytes = CPU_ALLOC_SIZE(max_cpus);
    std::vector<std::uint8_t> mask(bytes);
    auto* cpus = reinterpret_cast<cpu_set_t*>(mask.data());
    if (sched_getaffinity(0, bytes, cpus) == 0)
        cores.cpus = static_cast<std::uint32_t>(CPU_COUNT_S(bytes, cpus));
    cores.set = short_hash(mask);
    return cores;
}

bool oversubscribed(const std::vector<Hello>& hellos, int rank) {
    const Hello& own = hellos[static_cast<std::size_t>(rank)];
    if (own.cpus == 0) return false;  // the system does not say
    std::uint32_t under_kernel = 0, with_mask = 0;
    for (const Hello& hello : hellos) {
        if (hello.kernel != own.kernel) continue;
        ++under_kernel;
        if (hello.cpu_set == own.cpu_set) ++with_mask;
    }
    if (with_mask > own.cpus) return true;
    return under_kernel > static_cast<std::uint32_t>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
}

coll::Cpus cpus_of_job(const std::vector<Hello>& hellos, const std::vector<std::int32_t>& node) {
    using Mask = std::pair<std::uint64_t, std::uint64_t>;  // kernel, set
    std::map<std::int32_t, Mask> mask_of_node;
    std::map<Mask, std::set<std::int32_t>> nodes_of_mask;
    for (std::size_t rank = 0; rank < hellos.size(); ++rank) {
        const Mask mask(hellos[rank].kernel, hellos[rank].cpu_set);
        if (mask_of_node.emplace(node[rank], mask).first->second != mask)
            return coll::Cpus::own;  // bound apart
        nodes_of_mask[mask].insert(node[rank]);
    }
    for (const Hello& hello : hellos)
        if (hello.cpus == 0 || hello.cpus > nodes_of_mask[{hello.kernel, hello.cpu_set}].size())
            return coll::Cpus::own;
    return coll::Cpus::shared;
}

std::uint64_t pipeline_threshold(const std::vector<Hello>& hellos) {
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t> ranks;  // by kernel and mask
    for (const Hello& hello : hellos)
        if (++ranks[{hello.kernel, hello.cpu_set}] > hello.cpus && hello.cpus > 0)
            return threshold_of_shared_cpus;
    return threshold;
}

}  // namespace mpisec::shim
