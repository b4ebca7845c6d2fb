#include "shim/p2p/communicator.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <numeric>
#include <ranges>
#include <shared_mutex>

#include "keys/hkdf.hpp"
#include "shim/p2p/operation.hpp"
#include "shim/p2p/realms.hpp"
#include "shim/p2p/same_node.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/runtime/state.hpp"
#include "shim/runtime/watchdog.hpp"

namespace mpisec::shim {

struct CommunicatorRegistry {
    std::shared_mutex mutex;
    std::unordered_map<MPI_Comm, std::unique_ptr<Communicator>> known;
    std::vector<std::unique_ptr<Communicator>> freed_but_held;
    /// Stand-ins for the parents of communicators that have none, by realm. Not under the mutex; their counts are under the Guard.
    std::map<const Realm*, Communicator> no_parent;
    /// One heir for each error handler, as long as it is needed: once it is gone, another handler may have the same handle. Under the mutex.
    std::map<MPI_Errhandler, std::weak_ptr<const Heir>> heirs;
};

namespace {

/// With MPISEC_SAME_NODE=seal every rank is a node of its own, and even what a rank sends to itself is sealed.
bool seals_on_node(const Realm& realm) {
    return realm.job_secret && (state.settings.same_node_sealed || realm.seals_on_node);
}

bool on_this_node(std::int32_t number) {
    const Realm& realm = realm_of(number);
    return seals_on_node(realm) ? number == realm.own_number() : facts_of(number).same_node;
}

std::optional<std::vector<std::int32_t>> members_of(MPI_Comm comm, const Realm& realm,
                                                    decltype(real.Comm_group) group_of) {
    MPI_Group group;
    if (group_of(comm, &group) != MPI_SUCCESS) return std::nullopt;
    int size = 0;
    real.Group_size(group, &size);
    std::vector<std::int32_t> members = numbers_of(group, realm);
    real.Group_free(&group);
    if (static_cast<int>(members.size()) != size) return std::nullopt;
    return members;
}

void describe_peers(Communicator& comm) {
    const Realm& realm = realm_of(comm.members);
    comm.peers = comm.inter ? comm.remote_members : comm.members;
    if (seals_on_node(realm)) {
        comm.seals = !comm.peers.empty();
        return;
    }
    for (std::int32_t peer : comm.peers) (facts_of(peer).same_node ? comm.mixed : comm.seals) = true;
    comm.verifies = comm.mixed && &realm == &state.world && verifies_same_node();
}

Communicator* enter(std::unique_ptr<Communicator> comm) {
    CommunicatorRegistry& registry = *process.communicators;
    std::unique_lock lock(registry.mutex);
    Communicator* entered = comm.get();
    auto& place = registry.known[comm->handle];
    if (place && place->holders > 0) {
        place->freed = true;
        registry.freed_but_held.push_back(std::move(place));
    }
    place = std::move(comm);
    registry_generation.fetch_add(1);
    return entered;
}

void append(std::string& bytes, Ranks members) {
    const auto count = static_cast<std::uint32_t>(members.size());
    bytes.append(reinterpret_cast<const char*>(&count), sizeof count);
    for (std::int32_t number : members) {
        const std::int32_t rank = number - realm_of(members).first;
        bytes.append(reinterpret_cast<const char*>(&rank), sizeof rank);
    }
}

Communicator* known(MPI_Comm handle) {
    CommunicatorRegistry& registry = *process.communicators;
    std::shared_lock lock(registry.mutex);
    auto found = registry.known.find(handle);
    return found == registry.known.end() ? nullptr : found->second.get();
}

/// A communicator that the program made while nothing had to be protected: all its processes are proven to be on this node.
Communicator* find_made_before(MPI_Comm handle) {
    if (gate.phase != Phase::closed) return nullptr;
    std::vector<Realm*> realms = further_realms();
    std::erase_if(realms, [](const Realm* realm) { return realm->job_secret.has_value(); });
    if (gate.single_node) realms.push_back(&state.world);
    Guard guard;
    for (Realm* realm : realms) {
        const std::optional<Membership> membership = read_membership(handle, *realm);
        if (!membership || membership->none()) continue;
        Communicator* other_thread_s = known(handle);
        return other_thread_s ? other_thread_s : adopt(handle, *membership, {});
    }
    return nullptr;
}

}  // namespace

constinit thread_local RecentCommunicator recent_communicator[recent_communicators]{};

Communicator* find_in_registry(MPI_Comm handle, RecentCommunicator& recent) {
    const std::uint64_t generation = registry_generation.load(std::memory_order_acquire);
    CommunicatorRegistry& registry = *process.communicators;
    std::shared_lock lock(registry.mutex);
    auto found = registry.known.find(handle);
    if (found == registry.known.end()) {
        lock.unlock();
        return handle == constants.comm_null ? nullptr : find_made_before(handle);
    }
    recent = {handle, found->second.get(), generation};
    return recent.comm;
}

Communicator& no_parent(const Realm& realm) {
    Guard guard;
    return process.communicators->no_parent[&realm];
}

Membership membership_of(const Communicator& comm) {
    return {comm.members.list(), comm.remote_members.list(), comm.inter};
}

std::optional<Membership> read_membership(MPI_Comm comm, const Realm& realm) {
    Membership membership;
    int inter = 0;
    real.Comm_test_inter(comm, &inter);
    membership.inter = inter != 0;
    auto members = members_of(comm, realm, real.Comm_group);
    if (!members) return std::nullopt;  // processes of another realm
    membership.members = std::move(*members);
    if (inter) {
        auto remote = members_of(comm, realm, real.Comm_remote_group);
        if (!remote) return std::nullopt;
        membership.remote_members = std::move(*remote);
    }
    return membership;
}

bool crosses_nodes(const Membership& membership) {
    auto elsewhere = [](std::int32_t world) { return !on_this_node(world); };
    return std::ranges::any_of(membership.members, elsewhere) ||
           std::ranges::any_of(membership.remote_members, elsewhere);
}

std::vector<std::int32_t> members_of_both(const Membership& membership) {
    const auto& [members, remote, inter] = membership;
    if (!inter) return members;
    // The group with the lower first rank comes first, on both sides.
    const bool second = !remote.empty() && !members.empty() && remote.front() < members.front();
    std::vector<std::int32_t> both = second ? remote : members;
    const Ranks others = second ? members : remote;
    both.insert(both.end(), others.begin(), others.end());
    return both;
}

wire::ContextId derive_context(Communicator& parent, const std::string& constructor,
                               const Membership& membership) {
    const auto& [members, remote_members, inter] = membership;
    // Both sides of an inter-communicator must hash the same bytes: the group with the lower first rank comes
    // first.
    const bool swap = !remote_members.empty() && !members.empty() && remote_members.front() < members.front();
    std::string bytes = "mpisec communicator";
    bytes.append(reinterpret_cast<const char*>(parent.context.data()), parent.context.size());
    bytes += constructor;
    bytes += '\0';
    append(bytes, swap ? remote_members : members);
    append(bytes, swap ? members : remote_members);
    Guard guard;
    const std::uint64_t count = parent.count_creation(bytes);
    bytes.append(reinterpret_cast<const char*>(&count), sizeof count);
    const keys::Digest digest = keys::sha256(keys::as_bytes(bytes));
    wire::ContextId context;
    std::copy_n(digest.begin(), context.size(), context.begin());
    return context;
}

Communicator* adopt(MPI_Comm handle, const Membership& membership, const wire::ContextId& context) {
    auto comm = std::make_unique<Communicator>();
    comm->handle = handle;
    comm->members = membership.members;
    comm->remote_members = membership.remote_members;
    comm->inter = membership.inter;
    comm->size = static_cast<int>(membership.members.size());
    const Realm& realm = realm_of(membership.members);
    comm->rank = static_cast<int>(std::ranges::find(membership.members, realm.own_number()) -
                                  membership.members.begin());
    comm->threshold = realm.threshold;
    comm->short_first = realm.short_first;
    comm->is_channel = realm.job_secret && handle == realm.channel;
    comm->crosses = crosses_nodes(membership);
    comm->context = context;
    describe_peers(*comm);
    return enter(std::move(comm));
}

void forget(Communicator& comm) {
    CommunicatorRegistry& registry = *process.communicators;
    std::unique_lock lock(registry.mutex);
    comm.freed = true;
    auto found = registry.known.find(comm.handle);
    if (found == registry.known.end() || found->second.get() != &comm)
        return;  // another thread's new communicator has the handle already
    registry_generation.fetch_add(1);
    if (comm.holders > 0) registry.freed_but_held.push_back(std::move(found->second));
    registry.known.erase(found);
}

void forget_all() {
    CommunicatorRegistry& registry = *process.communicators;
    std::unique_lock lock(registry.mutex);
    registry.known.clear();
    registry.freed_but_held.clear();
    registry.no_parent.clear();
    registry_generation.fetch_add(1);
}

Heir::~Heir() {
    if (comm != constants.comm_null) real.Comm_free(&comm);
}

std::shared_ptr<const Heir> heir_of_handler(MPI_Comm comm) {
    CommunicatorRegistry& registry = *process.communicators;
    MPI_Errhandler handler;
    if (real.Comm_get_errhandler(comm, &handler) != MPI_SUCCESS) return nullptr;
    std::unique_lock lock(registry.mutex);
    std::erase_if(registry.heirs, [](const auto& each) { return each.second.expired(); });
    std::shared_ptr<const Heir> heir = registry.heirs[handler].lock();
    MPI_Comm made = constants.comm_null;
    if (!heir && real.Comm_dup(state.private_self, &made) == MPI_SUCCESS) {
        // Keeps the handler alive, so that no other handler gets its handle meanwhile.
        real.Comm_set_errhandler(made, handler);
        heir = std::shared_ptr<const Heir>(new Heir{made});
        registry.heirs[handler] = heir;
    }
    give_back_handler(handler);
    return heir;
}

void free_heirs() {
    CommunicatorRegistry& registry = *process.communicators;
    std::unique_lock lock(registry.mutex);
    for (auto& [handler, weak] : registry.heirs)
        if (const auto heir = weak.lock()) real.Comm_free(&heir->comm);
    registry.heirs.clear();
}

bool in_use(const Realm& realm) {
    CommunicatorRegistry& registry = *process.communicators;
    std::shared_lock lock(registry.mutex);
    auto uses = [&](const Communicator& comm) {
        return (!comm.is_channel || comm.holders > 0) && &realm_of(comm.members) == &realm;
    };
    return std::ranges::any_of(registry.known, [&](const auto& known) { return uses(*known.second); }) ||
           std::ranges::any_of(registry.freed_but_held, [&](const auto& held) { return uses(*held); });
}

void forget_parent(const Realm& realm) {
    process.communicators->no_parent.erase(&realm);
}

void hold(Communicator& comm) {
    ++comm.holders;
}

void release(Communicator& comm) {
    if (--comm.holders > 0 || !comm.freed) return;
    if (comm.free_later) free_without_guard([handle = comm.handle]() mutable { real.Comm_free(&handle); });
    CommunicatorRegistry& registry = *process.communicators;
    std::unique_lock lock(registry.mutex);
    std::erase_if(registry.freed_but_held, [&](const auto& held) { return held.get() == &comm; });
}

void hold_for_persistent(Communicator& comm) {
    hold(comm);
    ++comm.persistent_requests;
}

void release_from_persistent(Communicator& comm) {
    --comm.persistent_requests;
    release(comm);
}

int make_shadow_communicator(MPI_Comm made, const Membership& expected, MPI_Comm* shadow) {
    if (expected.inter)
        return real.Intercomm_merge(made, members_of_both(expected).front() != expected.members.front(),
                                    shadow);
    MPI_Group group;
    real.Comm_group(made, &group);
    // Not MPI_Comm_dup: that would copy the user's attributes.
    const int code = real.Comm_create(made, group, shadow);
    real.Group_free(&group);
    return code;
}

bool crosses_nodes(MPI_Comm handle) {
    if (handle == constants.comm_null) return false;  // the MPI library reports the error
    const Communicator* comm = find_communicator(handle);
    return !comm || comm->crosses;
}

}  // namespace mpisec::shim
