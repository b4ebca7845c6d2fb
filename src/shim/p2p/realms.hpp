// Realms (process/world.hpp), and what is known of each process in them, by its number.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "shim/runtime/state.hpp"

namespace mpisec::shim {

struct PeerFacts {
    Realm* realm = nullptr;
    std::int32_t node = 0;   ///< differs from that of any process of another realm
    bool same_node = false;  ///< proven to share memory with this process (M1)
};

/// Facts about a process in any realm of this one. Ranks of MPI_COMM_WORLD with the same node number have proven to share memory.
inline PeerFacts facts_of(std::int32_t number) {
    World& world = state.world;
    if (number >= world.size) return process.peer_facts[number];
    return {&world, world.node_of(number), world.on_own_node(number)};
}
/// The realm of a communicator's members, who all belong to one; the world when there are none.
Realm& realm_of(Ranks members);
inline Realm& realm_of(std::int32_t number) {
    return number < state.world.size ? state.world : *process.peer_facts[number].realm;
}
inline std::int32_t rank_in_realm(std::int32_t number) {
    return number - realm_of(number).first;
}
/// This process's number among members of one realm.
inline std::int32_t own_number(Ranks members) {
    return realm_of(members).own_number();
}
/// The node to which the process counts; with MPISEC_SAME_NODE=seal every process is a node of its own.
inline std::int32_t node_of(std::int32_t number) {
    const bool alone = state.settings.same_node_sealed || realm_of(number).seals_on_node;
    return alone ? number : facts_of(number).node;
}

/// Assigns numbers to a new realm's processes, and makes all that is kept of each. `same_node`: whether all of them share this process's
/// node; else only this process itself does.
Realm& add_realm(std::unique_ptr<Realm> realm, bool same_node);
/// Wipes the realm's keys: no communicator of its processes is left.
void remove_realm(Realm& realm);
/// The last step: nothing refers to any realm any more.
void forget_realms();
/// All realms but that of MPI_COMM_WORLD and those that were removed.
std::vector<Realm*> further_realms();
/// All realms that have a channel.
std::vector<Realm*> protected_realms();

/// Numbers of a group's processes in this realm; empty when one of them is not in it.
std::vector<std::int32_t> numbers_of(MPI_Group group, const Realm& realm);

}  // namespace mpisec::shim
