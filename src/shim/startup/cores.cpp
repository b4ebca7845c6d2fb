#include "shim/startup/cores.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "keys/hkdf.hpp"
#include "shim/runtime/state.hpp"
#include "shim/startup/node_id.hpp"
#include "wire/stream.hpp"

namespace mpisec::shim {
namespace {

constexpr std::size_t max_cpus = 16 * 1024;

constexpr std::uint64_t threshold_of_shared_cpus = 512 * 1024;

std::uint64_t short_hash(std::span<const std::uint8_t> bytes) {
    const keys::Digest digest = keys::sha256(bytes);
    std::uint64_t mark = 0;
    std::memcpy(&mark, digest.data(), sizeof mark);
    return mark;
}

using Mask = std::pair<std::uint64_t, std::uint64_t>;  // kernel, set

Mask mask_of(const Hello& hello) {
    return {hello.kernel, hello.cpu_set};
}

}  // namespace

Cores cores_here() {
    Cores cores;
    const std::string boot = boot_id();
    if (boot.empty()) return cores;  // else machines without a boot id would count as one
    cores.kernel = short_hash(keys::as_bytes(boot));
    const std::size_t bytes = CPU_ALLOC_SIZE(max_cpus);
    std::vector<std::uint8_t> mask(bytes);
    auto* cpus = reinterpret_cast<cpu_set_t*>(mask.data());
    if (sched_getaffinity(0, bytes, cpus) == 0)
        cores.cpus = static_cast<std::uint32_t>(CPU_COUNT_S(bytes, cpus));
    cores.set = short_hash(mask);
    return cores;
}

bool oversubscribed(const Hello& own, const std::vector<Hello>& node, const NodeCards& cards) {
    if (own.cpus == 0) return false;  // the system does not say
    std::size_t under_kernel = 0, with_mask = 0;
    for (const Hello& hello : node) with_mask += mask_of(hello) == mask_of(own);
    for (const NodeCard& card : cards) {
        if (card.hello.kernel != own.kernel) continue;
        under_kernel += card.ranks.size();
        const bool is_own = std::ranges::binary_search(card.ranks, own.rank);
        if (!is_own && !card.bound_apart && mask_of(card.hello) == mask_of(own))
            with_mask += card.ranks.size();
    }
    if (with_mask > own.cpus) return true;
    return under_kernel > static_cast<std::size_t>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
}

coll::Cpus cpus_of_job(const NodeCards& cards) {
    std::map<Mask, std::size_t> nodes_with;
    for (const NodeCard& card : cards) ++nodes_with[mask_of(card.hello)];
    const bool shared = std::ranges::all_of(cards, [&](const NodeCard& card) {
        return !card.bound_apart && card.hello.cpus > 0 && card.hello.cpus <= nodes_with[mask_of(card.hello)];
    });
    return shared ? coll::Cpus::shared : coll::Cpus::own;
}

namespace {

/// Whether ranks of this job share CPUs, as far as its nodes' cards say.
bool cpus_are_shared(const NodeCards& cards) {
    std::map<Mask, std::size_t> ranks_with;
    for (const NodeCard& card : cards)
        if (!card.bound_apart)
            if ((ranks_with[mask_of(card.hello)] += card.ranks.size()) > card.hello.cpus &&
                card.hello.cpus > 0)
                return true;
    return false;
}

}  // namespace

void set_threshold(Realm& realm, const NodeCards& cards) {
    std::uint64_t fixed = state.settings.threshold;
    if (!fixed && cpus_are_shared(cards)) fixed = threshold_of_shared_cpus;
    if (!fixed) fixed = state.messages.threshold;
    realm.threshold = fixed ? fixed : wire::automatic_longest_first_bytes(realm.cipher_speed);
    realm.short_first = fixed ? fixed : wire::automatic_first_bytes(realm.cipher_speed);
}

}  // namespace mpisec::shim
