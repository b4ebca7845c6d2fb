// Where collectives of one communicator meet: tags on a shadow communicator, the keys of its sealed
// blocks, the memory of its ranks on this node, and the count of collectives, which names every sealed block
// (S4).
//
// Communicators share shadow communicators: one that is made from another gets tags of its own on the shadow
// communicator of that one, which all its members are in. All members of the parent know which: they call its
// constructors in the same order.
//
// A persistent collective has a context of its own: the order in which several of them are started need not
// be the same on all ranks (MPI standard section 6.13), so they cannot share a count.
#pragma once

#include <mpi.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "aead/aead.hpp"
#include "coll/selection/selection.hpp"
#include "fabric/node_memory.hpp"
#include "fabric/topology.hpp"
#include "keys/secret.hpp"
#include "shim/p2p/roster.hpp"
#include "wire/call_notice.hpp"
#include "wire/collective.hpp"

namespace mpisec::shim {

struct Communicator;

/// The keys of a communicator's collectives in one epoch.
struct CollectiveKeys {
    std::uint64_t epoch = 0;
    aead::KeySet aead;
    keys::Secret sealed_block;  ///< of which large sealed blocks derive theirs
};

/// What one collective call gets: its number, and what it shares with the other ranks.
struct CollectiveSequence {
    std::uint64_t number = 0;           ///< in its context, from 0
    std::uint32_t number_in_epoch = 0;  ///< for nonces
    std::shared_ptr<CollectiveKeys> keys;
    int tag = 0;
    /// null when no other rank of the communicator is on this node
    fabric::NodeMemory::Slot* slot = nullptr;
};

/// The private communicator that messages travel on. Freed with the last context in it: a persistent
/// collective may be started after MPI_Comm_free of its communicator (MPI standard section 7.4.3).
class ShadowCommunicator {
  public:
    /// Owns `handle`, whose ranks are `world_ranks`, unless it is the channel.
    ShadowCommunicator(MPI_Comm handle, Ranks world_ranks);
    ShadowCommunicator(const ShadowCommunicator&) = delete;
    ShadowCommunicator& operator=(const ShadowCommunicator&) = delete;
    ~ShadowCommunicator();
    MPI_Comm handle() const { return handle_; }
    Ranks world_ranks() const { return world_ranks_; }  ///< world ranks, by rank

  private:
    MPI_Comm handle_;
    const SharedNumbers world_ranks_;
};

/// Blocks of tags on a shadow communicator, one for each communicator. None is used twice, so that messages
/// of one communicator never match another's, not even when one is freed while messages are under way; but
/// for those of the reserve, which are used again when all members have freed the communicator
/// (tag_reserve.hpp).
struct TagBlocks {
    std::shared_ptr<ShadowCommunicator> shadow;
    int first = 0, count = 0;
    bool none() const { return count == 0; }
};
/// All blocks of a new shadow communicator.
TagBlocks all_blocks(MPI_Comm shadow, Ranks world_ranks);
/// Those that the channel has for collectives: none where the MPI library has few tags. Keeps back the
/// reserve.
TagBlocks blocks_of_channel(Ranks world_ranks);

class CollectiveContext {
  public:
    /// Of `world_ranks`, who are all on the shadow communicator. The first block is this context's, the
    /// others are for communicators that will be made from this one.
    CollectiveContext(const TagBlocks& blocks, Ranks world_ranks, const wire::ContextId& context);
    ~CollectiveContext();
    CollectiveContext(const CollectiveContext&) = delete;
    CollectiveContext& operator=(const CollectiveContext&) = delete;
    /// A context beside this one in the same block of tags, for the `number`-th persistent collective.
    std::unique_ptr<CollectiveContext> for_persistent(std::uint64_t number) const;

    /// Blocks for a communicator that is being made from this one, or for the several that one call divides
    /// it into; none when all are used up. To be called in the order of constructor calls. Under the Guard.
    TagBlocks take_blocks();
    /// Of a shadow communicator with the same world ranks.
    void give_blocks(TagBlocks blocks) { spare_ = std::move(blocks); }
    bool has_blocks() const { return !spare_.none(); }

    MPI_Comm shadow() const { return shadow_->handle(); }
    int shadow_rank(int rank) const {
        return shadow_ranks_.empty() ? rank : shadow_ranks_[static_cast<std::size_t>(rank)];
    }
    int rank() const { return rank_; }                  ///< among them
    Ranks world_ranks() const { return world_ranks_; }  ///< world ranks, by rank
    const wire::ContextId& context() const { return context_; }
    const fabric::Topology& topology() const { return world_ranks_.roster().topology(); }
    /// To be taken in the order of the calls, by every rank, whether it takes part or not. Under the Guard.
    CollectiveSequence next(bool blocking);
    std::uint64_t next_number() const { return next_number_; }

    /// One of the last calls: what it was, for ranks that wait in another one (call_comparison.hpp).
    struct Called {
        wire::CallNotice call;
        const char* procedure = nullptr;  ///< null: there is nothing to compare
        bool failed = false;              ///< here, or as another rank has said, maybe before the call
    };
    /// Where the call of this number is, or an older or newer one in its place.
    Called& called(std::uint64_t number) { return called_[number % called_.size()]; }
    /// The error with which each collective from now on ends at once; MPI_SUCCESS while all is well.
    int ended = MPI_SUCCESS;

    /// What collective_choice.cpp has found for this topology; filled when first asked.
    using Choice = std::optional<coll::Selection::For>;
    std::array<Choice, coll::collectives> choices;

  private:
    CollectiveContext(const CollectiveContext& beside, std::uint64_t number);
    fabric::NodeMemory::Slot* next_slot(bool blocking);

    std::shared_ptr<ShadowCommunicator> shadow_;
    TagBlocks spare_;
    wire::ContextId context_;
    int rank_ = 0;
    SharedNumbers world_ranks_;
    std::vector<int> shadow_ranks_;  ///< by rank; empty where they are the same
    int first_tag_, tags_;
    std::uint64_t numbers_in_epoch_;
    std::uint64_t next_number_ = 0, next_blocking_ = 0, next_other_ = 0;
    std::shared_ptr<CollectiveKeys> keys_;
    std::optional<fabric::NodeMemory> memory_;
    std::array<Called, wire::calls_kept> called_;
};

/// That calls on it are compared: from its beginning to its end (call_comparison.cpp).
void make_known(CollectiveContext& collective_context);
void forget(CollectiveContext& collective_context);

/// Gives a communicator that crosses nodes its context for collectives on a shadow communicator that has been
/// compared.
void equip(Communicator& comm, const TagBlocks& blocks);
/// Takes it away; the shadow communicator is freed with its last context. No collective may be under way.
void unequip(Communicator& comm);
/// Waits until none is.
void finish_collectives(Communicator& comm);

}  // namespace mpisec::shim
