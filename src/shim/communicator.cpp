#include "shim/communicator.hpp"

#include <openssl/sha.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <numeric>
#include <shared_mutex>

#include "shim/collective_space.hpp"
#include "shim/constants.hpp"
#include "shim/entry.hpp"
#include "shim/errors.hpp"
#include "shim/operation.hpp"
#include "shim/real.hpp"
#include "shim/same_node.hpp"
#include "shim/state.hpp"
#include "shim/watchdog.hpp"

namespace mpisec::shim {
namespace {

std::unordered_map<MPI_Comm, std::unique_ptr<Communicator>> registry;
std::vector<std::unique_ptr<Communicator>> freed_but_held;
std::shared_mutex registry_mutex;

void describe_ranks(Communicator& comm) {
    const std::vector<std::int32_t>& other_side = comm.inter ? comm.remote_members : comm.members;
    bool any_local = false;
    // With MPISEC_SAME_NODE=seal every rank is a node of its own, and even what it sends to itself is sealed.
    const bool all_sealed = state.settings.same_node_sealed;
    auto on_this_node = [&](std::int32_t world) {
        return all_sealed ? world == state.world.rank
                          : state.world.same_node[static_cast<std::size_t>(world)] != 0;
    };
    for (std::int32_t world : other_side) {
        const bool local = on_this_node(world) && !all_sealed;
        comm.peers.push_back({world, local});
        any_local = any_local || local;
        comm.seals = comm.seals || !local;
        comm.crosses = comm.crosses || !on_this_node(world);
    }
    for (std::int32_t world : comm.members) comm.crosses = comm.crosses || !on_this_node(world);
    comm.mixed = any_local;
    comm.verifies = any_local && verifies_same_node();
}

bool read_groups(Communicator& comm) {
    MPI_Group group;
    real.Comm_group(comm.handle, &group);
    comm.members = world_ranks(group);
    real.Group_free(&group);
    bool complete = static_cast<int>(comm.members.size()) == comm.size;
    if (comm.inter) {
        real.Comm_remote_group(comm.handle, &group);
        int remote_size = 0;
        real.Group_size(group, &remote_size);
        comm.remote_members = world_ranks(group);
        real.Group_free(&group);
        complete = complete && static_cast<int>(comm.remote_members.size()) == remote_size;
    }
    return complete;
}

std::unique_ptr<Communicator> describe(MPI_Comm handle) {
    auto comm = std::make_unique<Communicator>();
    comm->handle = handle;
    int inter = 0;
    real.Comm_test_inter(handle, &inter);
    comm->inter = inter != 0;
    real.Comm_rank(handle, &comm->rank);
    real.Comm_size(handle, &comm->size);
    if (!read_groups(*comm))
        return nullptr;  // processes of another job: not protected yet, so unknown, so refused
    describe_ranks(*comm);
    return comm;
}

Communicator* enter(std::unique_ptr<Communicator> comm) {
    std::unique_lock lock(registry_mutex);
    Communicator* entered = comm.get();
    auto& place = registry[comm->handle];
    if (place && place->holders > 0) {
        place->freed = true;
        freed_but_held.push_back(std::move(place));
    }
    place = std::move(comm);
    registry_generation.fetch_add(1);
    return entered;
}

void append(std::string& bytes, const std::vector<std::int32_t>& ranks) {
    const auto count = static_cast<std::uint32_t>(ranks.size());
    bytes.append(reinterpret_cast<const char*>(&count), sizeof count);
    bytes.append(reinterpret_cast<const char*>(ranks.data()), ranks.size() * sizeof(std::int32_t));
}

}  // namespace

constinit thread_local RecentCommunicator recent_communicator[recent_communicators];
std::atomic<std::uint64_t> registry_generation{1};

Communicator* find_in_registry(MPI_Comm handle, RecentCommunicator& recent) {
    const std::uint64_t generation = registry_generation.load(std::memory_order_acquire);
    std::shared_lock lock(registry_mutex);
    auto found = registry.find(handle);
    if (found == registry.end()) return nullptr;
    recent = {handle, found->second.get(), generation};
    return recent.comm;
}

wire::ContextId derive_context(Communicator& parent, const std::string& constructor,
                               const std::vector<std::int32_t>& members,
                               const std::vector<std::int32_t>& remote_members) {
    // Both sides of an inter-communicator must hash the same bytes: the group with the lower first rank comes
    // first.
    const bool swap = !remote_members.empty() && remote_members.front() < members.front();
    std::string bytes = "mpisec communicator";
    bytes.append(reinterpret_cast<const char*>(parent.context.data()), parent.context.size());
    bytes += constructor;
    bytes += '\0';
    append(bytes, swap ? remote_members : members);
    append(bytes, swap ? members : remote_members);
    const std::uint64_t count = parent.creations[bytes]++;
    bytes.append(reinterpret_cast<const char*>(&count), sizeof count);
    unsigned char digest[SHA256_DIGEST_LENGTH];
    SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest);
    wire::ContextId context;
    std::copy_n(digest, context.size(), context.begin());
    return context;
}

Communicator* adopt(MPI_Comm handle, const wire::ContextId& context) {
    if (handle == constants.comm_null) return nullptr;
    auto comm = describe(handle);
    if (!comm) return nullptr;
    comm->context = context;
    return enter(std::move(comm));
}

Communicator* adopt(MPI_Comm handle, Communicator* parent, const std::string& constructor) {
    if (handle == constants.comm_null) return nullptr;
    auto comm = describe(handle);
    if (!comm) return nullptr;
    static Communicator root;  // its context is all zero
    Guard guard;
    comm->context = derive_context(parent ? *parent : root, constructor, comm->members, comm->remote_members);
    return enter(std::move(comm));
}

std::vector<std::int32_t> world_ranks(MPI_Group group) {
    int size = 0;
    real.Group_size(group, &size);
    std::vector<int> own(static_cast<std::size_t>(size)), translated(static_cast<std::size_t>(size));
    std::iota(own.begin(), own.end(), 0);
    MPI_Group world;
    real.Comm_group(constants.comm_world, &world);
    if (size > 0) real.Group_translate_ranks(group, size, own.data(), world, translated.data());
    real.Group_free(&world);
    if (std::find(translated.begin(), translated.end(), MPI_UNDEFINED) != translated.end()) return {};
    return {translated.begin(), translated.end()};
}

void forget(Communicator& comm) {
    std::unique_lock lock(registry_mutex);
    comm.freed = true;
    auto found = registry.find(comm.handle);
    if (found == registry.end() || found->second.get() != &comm)
        return;  // another thread's new communicator has the handle already
    registry_generation.fetch_add(1);
    if (comm.holders > 0) freed_but_held.push_back(std::move(found->second));
    registry.erase(found);
}

void forget_all() {
    std::unique_lock lock(registry_mutex);
    registry.clear();
    freed_but_held.clear();
    registry_generation.fetch_add(1);
}

void hold(Communicator& comm) {
    ++comm.holders;
}

void release(Communicator& comm) {
    if (--comm.holders > 0 || !comm.freed) return;
    std::unique_lock lock(registry_mutex);
    std::erase_if(freed_but_held, [&](const auto& held) { return held.get() == &comm; });
}

int equip(Communicator& comm) {
    if (!comm.crosses) return MPI_SUCCESS;
    MPI_Comm twin = constants.comm_null;
    int code = MPI_SUCCESS;
    if (comm.inter) {
        const bool high = !comm.remote_members.empty() && !comm.members.empty() &&
                          comm.remote_members.front() < comm.members.front();
        code = real.Intercomm_merge(comm.handle, high, &twin);
    } else {
        MPI_Group group;
        real.Comm_group(comm.handle, &group);
        // Not MPI_Comm_dup: that would copy the user's attributes.
        code = real.Comm_create(comm.handle, group, &twin);
        real.Group_free(&group);
    }
    if (code != MPI_SUCCESS) return code;
    equip(comm, twin);
    return MPI_SUCCESS;
}

void equip(Communicator& comm, MPI_Comm twin) {
    real.Comm_set_errhandler(twin, constants.errors_return);
    comm.space = std::make_shared<CollectiveSpace>(twin, comm.context);
}

void finish_collectives(Communicator& comm) {
    WaitScope waiting("MPI_Comm_free (collectives under way)", MPI_ANY_SOURCE, MPI_ANY_TAG);
    Backoff backoff;
    while (comm.collectives > 0) {
        progress();
        backoff.pause();
    }
}

void unequip(Communicator& comm) {
    comm.space.reset();
}

bool crosses_nodes(MPI_Comm handle) {
    if (handle == constants.comm_null) return false;  // the MPI library says what is wrong with it
    const Communicator* comm = find_communicator(handle);
    return !comm || comm->crosses;
}

}  // namespace mpisec::shim
