#include "shim/bootstrap_cores.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <span>
#include <utility>

#include "keys/hkdf.hpp"
#include "shim/bootstrap_place.hpp"

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
    cores.kernel = short_hash(keys::as_bytes(boot_id()));
    const std::size_t bytes = CPU_ALLOC_SIZE(max_cpus);
    std::vector<std::uint8_t> mask(bytes);
    auto* cpus = reinterpret_cast<cpu_set_t*>(mask.data());
    if (sched_getaffinity(0, bytes, cpus) == 0)
        cores.cpus = static_cast<std::uint32_t>(CPU_COUNT_S(bytes, cpus));
    cores.set = short_hash(mask);
    return cores;
}

bool crowded(const std::vector<Card>& cards, int rank) {
    const Card& own = cards[static_cast<std::size_t>(rank)];
    if (own.cpus == 0) return false;  // the system does not say
    std::uint32_t under_kernel = 0, with_mask = 0;
    for (const Card& card : cards) {
        if (card.kernel != own.kernel) continue;
        ++under_kernel;
        if (card.cpu_set == own.cpu_set) ++with_mask;
    }
    const auto online = static_cast<std::uint32_t>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
    return with_mask > own.cpus || under_kernel > online;
}

coll::Cpus cpus_of_job(const std::vector<Card>& cards) {
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t> ranks;  // by kernel and mask
    for (const Card& card : cards)
        if (++ranks[{card.kernel, card.cpu_set}] > card.cpus && card.cpus > 0) return coll::Cpus::shared;
    return coll::Cpus::own;
}

std::uint64_t pipeline_threshold(coll::Cpus cpus) {
    return cpus == coll::Cpus::shared ? threshold_of_shared_cpus : threshold;
}

}  // namespace mpisec::shim
