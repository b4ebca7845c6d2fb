#include "shim/p2p/realms.hpp"

#include <algorithm>
#include <mutex>
#include <numeric>

#include "shim/p2p/peer_state.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"

namespace mpisec::shim {

struct Realms {
    std::mutex mutex;
    std::vector<std::unique_ptr<Realm>> all;
    /// Removed realms: numbers of their processes may still be noted somewhere.
    std::vector<std::unique_ptr<Realm>> gone;
};

Realm& realm_of(Ranks members) {
    // The world needs no look-up: facts may be gone when what a program left behind ends.
    if (members.empty() || members.front() < state.world.size || !process.peer_facts) return state.world;
    return realm_of(members.front());
}

Realm& add_realm(std::unique_ptr<Realm> realm, bool same_node) {
    Realms& realms = *process.realms;
    std::lock_guard lock(realms.mutex);
    Realm& added = *realm;
    added.first = add_peers(added.size);
    for (std::int32_t number = added.first; number < added.first + added.size; ++number)
        process.peer_facts[number] = {&added, same_node ? added.first : number,
                                      same_node || number == added.own_number()};
    realms.all.push_back(std::move(realm));
    return added;
}

void remove_realm(Realm& realm) {
    Realms& realms = *process.realms;
    std::lock_guard lock(realms.mutex);
    realm.job_secret.reset();  // first, so that nothing derives the keys again
    wipe_keys(realm);
    const auto found =
        std::ranges::find_if(realms.all, [&](const auto& each) { return each.get() == &realm; });
    if (found == realms.all.end()) return;
    realms.gone.push_back(std::move(*found));
    realms.all.erase(found);
}

void forget_realms() {
    Realms& realms = *process.realms;
    std::lock_guard lock(realms.mutex);
    realms.all.clear();
    realms.gone.clear();
}

std::vector<Realm*> further_realms() {
    Realms& realms = *process.realms;
    std::lock_guard lock(realms.mutex);
    std::vector<Realm*> found;
    for (const auto& realm : realms.all) found.push_back(realm.get());
    return found;
}

std::vector<Realm*> protected_realms() {
    std::vector<Realm*> found = further_realms();
    std::erase_if(found, [](const Realm* realm) { return !realm->job_secret; });
    if (state.world.job_secret) found.insert(found.begin(), &state.world);
    return found;
}

std::vector<std::int32_t> numbers_of(MPI_Group group, const Realm& realm) {
    const bool is_world = &realm == &state.world;
    if (is_world && !process.world_begun) return {};
    int size = 0;
    real.Group_size(group, &size);
    std::vector<int> own(static_cast<std::size_t>(size)), translated(own.size());
    std::iota(own.begin(), own.end(), 0);
    MPI_Group all = realm.group;
    if (is_world) real.Comm_group(constants.comm_world, &all);
    if (size > 0) real.Group_translate_ranks(group, size, own.data(), all, translated.data());
    if (is_world) real.Group_free(&all);
    if (std::ranges::find(translated, MPI_UNDEFINED) != translated.end()) return {};
    for (int& rank : translated) rank += realm.first;
    return {translated.begin(), translated.end()};
}

}  // namespace mpisec::shim
