// What MPIsec knows of a communicator: who its ranks are, which of them are on this node (M1), its context
// (docs/protocol.md, "Contexts"), and the receives and unexpected messages whose order matters (M4).
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "keys/hkdf.hpp"
#include "shim/p2p/realms.hpp"
#include "shim/p2p/roster.hpp"
#include "shim/p2p/verify.hpp"
#include "wire/frame.hpp"
#include "wire/order.hpp"
#include "wire/predecessors.hpp"

namespace mpisec::shim {

class CollectiveContext;
class Operation;
struct TagBlocks;

/// A receive whose message has not arrived yet, in the order of posting. Lives in the operation; linked into its communicator.
struct PostedReceive {
    std::uint64_t position = 0;
    int source = MPI_ANY_SOURCE;
    int tag = MPI_ANY_TAG;
    Operation* owner = nullptr;  ///< the operation to advance; null for a message that a probe took
    PostedReceive* older = nullptr;
    PostedReceive* newer = nullptr;

    bool can_match(int from, int with_tag) const {
        return (source == from || source == MPI_ANY_SOURCE) && (tag == with_tag || tag == MPI_ANY_TAG);
    }
};

/// A communicator of this process alone, with the error handler of freed ones whose operations are under way.
struct Heir {
    mutable MPI_Comm comm;
    ~Heir();
};

struct Communicator {
    MPI_Comm handle{};
    int rank = 0;
    int size = 0;
    bool inter = false;
    bool crosses = false;         ///< some rank of it (of either group) is on another node
    bool seals = false;           ///< some peer's messages are sealed
    bool mixed = false;           ///< a receive from MPI_ANY_SOURCE may match a plain message
    bool verifies = false;        ///< messages of this node have records (same_node.hpp)
    bool freed = false;           ///< the user freed it; operations still hold it
    bool free_later = false;      ///< the MPI library has yet to free it, when nothing holds it any more
    int persistent_requests = 0;  ///< they may be started after the user has freed it
    int holders = 0;              ///< operations that use it
    /// Numbers, by rank as used in source and destination arguments (remote group of an inter-communicator).
    Ranks peers;
    std::uint64_t threshold = 0;                ///< of its realm
    std::uint64_t short_first = 0;              ///< of its realm
    bool is_channel = false;                    ///< of its realm
    Traffic traffic = Traffic::point_to_point;  ///< what its messages are counted as
    SharedNumbers members;                      ///< of the local group, in rank order
    SharedNumbers remote_members;               ///< of the remote group; empty unless inter
    wire::ContextId context{};
    /// MPI_Comm_attach_buffer; null: a session's or the process's serves.
    std::shared_ptr<AttachedBuffer> buffer;
    bool of_session = false;  ///< made from a session's group, or from such a communicator
    /// Has its error handler once it is freed while operations still use it. Under the Guard.
    std::shared_ptr<const Heir> heir;
    /// Where its collectives meet; null unless it crosses nodes.
    std::shared_ptr<CollectiveContext> collective_context;
    int collectives = 0;                       ///< under way
    std::vector<const Operation*> agreements;  ///< under way, in the order of the calls (agreement.hpp)
    std::uint64_t persistent_collectives = 0;  ///< made so far

    /// Communicators made from this one, by the hash of constructor and members.
    std::map<keys::Digest, std::uint64_t> creations;
    /// Counts one more, and returns how many there were before with the same `constructor_and_members`. Under the Guard.
    std::uint64_t count_creation(const std::string& constructor_and_members) {
        return creations[keys::sha256(keys::as_bytes(constructor_and_members))]++;
    }

    // Receives, in the order in which MPI matches them.
    std::uint64_t next_position = 0;
    PostedReceive* oldest = nullptr;
    PostedReceive* newest = nullptr;
    std::unordered_map<std::uint64_t, wire::OrderTracker> order;  ///< per (source, tag)
    std::size_t order_sweep = 64;           ///< number of entries at which stale ones are removed
    wire::Predecessors predecessors;        ///< of messages to other ranks; in a SealingScope
    std::list<ReceivedMessage> unexpected;  ///< taken out of MPI by a probe, not yet received (M4)

    /// A small message that a probe for MPI_ANY_TAG showed and left in MPI, and the position of the first receive that could get it: when
    /// the probe showed it, none of its sender's earlier messages was left. Empty once the message is received, by whichever call.
    struct ShownFirst {
        int source, tag;
        std::uint64_t position;
    };
    std::optional<ShownFirst> shown_first;

    /// A message that a received message named as its predecessor, and that has not arrived although receives posted before that message's
    /// can still match it.
    struct Awaited {
        /// The receives that can match it: those for this tag, or for any tag if this is MPI_ANY_TAG.
        int source, tag;
        std::uint64_t counter;   ///< of the named message
        std::uint64_t position;  ///< of the receive that got the message that named it
    };
    std::list<Awaited> awaited;

    void post(PostedReceive& receive) {
        receive.position = next_position++;
        receive.older = newest;
        receive.newer = nullptr;
        (newest ? newest->newer : oldest) = &receive;
        newest = &receive;
    }
    void unpost(PostedReceive& receive) {
        (receive.older ? receive.older->newer : oldest) = receive.newer;
        (receive.newer ? receive.newer->older : newest) = receive.older;
    }
    std::uint64_t oldest_position() const { return oldest ? oldest->position : next_position; }
    /// The position of the oldest receive that a message of this source and tag (of any tag for MPI_ANY_TAG) would still match.
    std::uint64_t oldest_position(int source, int tag) const {
        for (const PostedReceive* receive = oldest; receive; receive = receive->newer)
            if (receive->can_match(source, tag == MPI_ANY_TAG ? receive->tag : tag)) return receive->position;
        return next_position;
    }

    /// Whether one of the receives from position `first` up to `end` is still waiting for its message, and can match one of this source and
    /// tag.
    bool older_waits(int source, int tag, std::uint64_t first, std::uint64_t end) const {
        for (const PostedReceive* receive = oldest; receive && receive->position < end;
             receive = receive->newer)
            if (receive->position >= first && receive->can_match(source, tag)) return true;
        return false;
    }

    bool has_peer(int rank_of_peer) const {
        return rank_of_peer >= 0 && static_cast<std::size_t>(rank_of_peer) < peers.size();
    }
    std::int32_t peer(int rank_of_peer) const { return peers[static_cast<std::size_t>(rank_of_peer)]; }
    /// Whether the peer has proven to share memory with this process, so that its messages are plain. False for a rank that is no peer: a
    /// status can show what somebody wrote into an envelope.
    bool is_local(int rank_of_peer) const {
        return mixed && has_peer(rank_of_peer) && facts_of(peer(rank_of_peer)).same_node;
    }
};

/// Communicators that this thread used last; they save the look-up.
struct RecentCommunicator {
    MPI_Comm handle;
    Communicator* comm;
    std::uint64_t generation;  ///< stale when it is not registry_generation
};
inline constexpr std::size_t recent_communicators = 4;
extern constinit thread_local RecentCommunicator recent_communicator[recent_communicators];
inline constexpr std::atomic<std::uint64_t>& registry_generation = process.registry_generation;
Communicator* find_in_registry(MPI_Comm comm, RecentCommunicator& recent);

/// Null for a communicator that MPIsec was not told of: its traffic is refused (S1). The usual look-up takes
/// no lock.
inline Communicator* find_communicator(MPI_Comm comm) {
    const auto bits = (std::uintptr_t)comm;
    RecentCommunicator& recent =
        recent_communicator[(bits ^ (bits >> 8) ^ (bits >> 16)) % recent_communicators];
    if (recent.handle == comm && recent.generation == registry_generation.load(std::memory_order_acquire))
        [[likely]]
        return recent.comm;
    return find_in_registry(comm, recent);
}

/// The processes that a communicator consists of: world ranks, in rank order.
struct Membership {
    std::vector<std::int32_t> members;              ///< of the local group
    std::vector<std::int32_t> remote_members = {};  ///< of the remote group; empty unless inter
    bool inter = false;
    bool operator==(const Membership&) const = default;
    bool none() const { return members.empty(); }  ///< MPI_COMM_NULL
};

Membership membership_of(const Communicator& comm);
/// What the MPI library says of `comm`; nothing when it has processes that are not in the realm.
std::optional<Membership> read_membership(MPI_Comm comm, const Realm& realm = state.world);
/// Whether it has a rank on another node than this rank's.
bool crosses_nodes(const Membership& membership);
/// The same for a handle; true for one that MPIsec does not know, false for MPI_COMM_NULL.
bool crosses_nodes(MPI_Comm comm);
/// The members of both groups, in the order that they have in the private communicator for its collectives.
std::vector<std::int32_t> members_of_both(const Membership& membership);

/// Registers `comm`. The caller has compared what the MPI library made with `membership`.
Communicator* adopt(MPI_Comm comm, const Membership& membership, const wire::ContextId& context);

/// The context of a communicator with these members: SHA-256 over the parent's context, the constructor, the members and how often they
/// have called it before. Every member derives the same context, and nobody else has a say in it. Must be called in the order of the
/// constructor calls, which all members share. Takes the Guard.
wire::ContextId derive_context(Communicator& parent, const std::string& constructor,
                               const Membership& membership);
/// Stands in as the parent of this realm's communicators that have none; its context is all zeros in the realm of MPI_COMM_WORLD.
Communicator& no_parent(const Realm& realm = state.world);

/// Forgets it, once the MPI library has freed its handle.
void forget(Communicator& comm);
void forget_all();
/// A communicator of this process alone with the error handler of `comm`, which the program is about to free; null where it cannot be made.
std::shared_ptr<const Heir> heir_of_handler(MPI_Comm comm);
void free_heirs();
/// Whether a communicator of its processes, other than the channel, is known.
bool in_use(const Realm& realm);
void forget_parent(const Realm& realm);

void hold(Communicator& comm);
void release(Communicator& comm);
void hold_for_persistent(Communicator& comm);
void release_from_persistent(Communicator& comm);

/// Asks the MPI library for the private communicator of one that it has just made, with the ranks in the order of members_of_both(expected).
/// Every member is in the call that made the communicator. Returns an MPI error code.
int make_shadow_communicator(MPI_Comm made, const Membership& expected, MPI_Comm* shadow);

}  // namespace mpisec::shim
