// What the collectives of one communicator share: tags on a shadow communicator, the keys of its sealed
// blocks, the memory of its ranks on this node, and the count of collectives, which names every sealed block
// (S4).
//
// Communicators share shadow communicators: a communicator that is made from another gets tags of its own on its
// parent's shadow communicator, which includes all its members. All members of the parent know which tags, because they
// call its constructors in the same order.
//
// A persistent collective has a context of its own: ranks need not start several of them in the same order (MPI
// standard section 6.13), so they cannot share a count.
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
    keys::Secret sealed_block;  ///< large sealed blocks derive their keys from it
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

/// The private communicator that messages of collectives travel on. It is freed with the last context in it, because a
/// persistent collective may be started after MPI_Comm_free of its communicator (MPI standard section 7.4.3).
class ShadowCommunicator {
  public:
    /// Owns `handle` unless that is the channel. Its ranks are `members`.
    ShadowCommunicator(MPI_Comm handle, Ranks members);
    ShadowCommunicator(const ShadowCommunicator&) = delete;
    ShadowCommunicator& operator=(const ShadowCommunicator&) = delete;
    ~ShadowCommunicator();
    MPI_Comm handle() const { return handle_; }
    Ranks members() const { return members_; }  ///< numbers of its processes (process/world.hpp), by rank

  private:
    MPI_Comm handle_;
    const SharedNumbers members_;
};

/// Blocks of tags on a shadow communicator, one for each communicator. None is used twice, so that messages
/// of one communicator never match receives of another, not even when one is freed while messages are under way. Only the
/// blocks of the reserve are used again, once all members have freed the communicator (tag_reserve.hpp).
struct TagBlocks {
    std::shared_ptr<ShadowCommunicator> shadow;
    int first = 0, count = 0;
    bool none() const { return count == 0; }
};
/// All blocks of a new shadow communicator.
TagBlocks all_blocks(MPI_Comm shadow, Ranks members);
/// The blocks that the channel has for collectives: none where the MPI library has few tags. Holds back the
/// reserve.
TagBlocks blocks_of_channel(Ranks members);

class CollectiveContext {
  public:
    /// A context of `members`, which are all on the shadow communicator. The first block is this context's, the
    /// other blocks are for communicators that will be made from this one.
    CollectiveContext(const TagBlocks& blocks, Ranks members, const wire::ContextId& context);
    ~CollectiveContext();
    CollectiveContext(const CollectiveContext&) = delete;
    CollectiveContext& operator=(const CollectiveContext&) = delete;
    /// A context beside this one, for the `number`-th persistent collective, with a tag of its own: two that are under way may have been
    /// started in different orders. To be called in the order of those calls. Under the Guard.
    std::unique_ptr<CollectiveContext> for_persistent(std::uint64_t number);
    /// Attaches the memory of its ranks on this node now rather than with the first collective.
    Result<void> attach_memory();

    /// Blocks for a communicator that is being made from this one, or for the several communicators that one call divides
    /// it into; none when all are used up. To be called in the order of constructor calls. Under the Guard.
    TagBlocks take_blocks();
    /// Gives it blocks of a shadow communicator with the same members.
    void give_blocks(TagBlocks blocks) { spare_ = std::move(blocks); }
    bool has_blocks() const { return !spare_.none(); }

    MPI_Comm shadow() const { return shadow_->handle(); }
    int shadow_rank(int rank) const {
        return shadow_ranks_.empty() ? rank : shadow_ranks_[static_cast<std::size_t>(rank)];
    }
    int rank() const { return rank_; }  ///< among members()
    Ranks members() const {
        return members_;
    }  ///< numbers of its processes, for an inter-communicator of both groups'
    const wire::ContextId& context() const { return context_; }
    const fabric::Topology& topology() const { return members_.roster().topology(); }
    /// To be called in the order of the collective calls, by every rank, whether it takes part or not. Under the Guard.
    CollectiveSequence next(bool blocking);
    std::uint64_t next_number() const { return next_number_; }

    /// What one of the last calls was, for comparison with ranks that wait in a different call (call_comparison.hpp).
    struct Called {
        wire::CallNotice call;
        const char* procedure = nullptr;  ///< null: there is nothing to compare
        bool failed = false;  ///< here, or, by its notice, on another rank, maybe before this call
    };
    /// The place for the call of this number; it may hold an older or newer call.
    Called& called(std::uint64_t number) { return called_[number % called_.size()]; }
    /// The error with which each collective from now on ends at once; MPI_SUCCESS while all is well.
    int ended = MPI_SUCCESS;

    /// What collective_choice.cpp has found for this topology; filled when first asked for.
    using Choice = std::optional<coll::Selection::For>;
    std::array<Choice, coll::collectives> choices;

  private:
    CollectiveContext(const CollectiveContext& beside, std::uint64_t number, int tag);
    int tag_for_persistent();
    fabric::NodeMemory::Slot* next_slot(bool blocking);

    std::shared_ptr<ShadowCommunicator> shadow_;
    TagBlocks spare_;
    wire::ContextId context_;
    int rank_ = 0;
    SharedNumbers members_;
    std::vector<int> shadow_ranks_;  ///< by rank; empty where they are the same
    int first_tag_, tags_;
    unsigned blocking_slots_, slots_;
    struct {
        int first, count, used;
    } tags_for_persistent_{};
    std::uint64_t numbers_in_epoch_;
    std::uint64_t next_number_ = 0, next_blocking_ = 0, next_other_ = 0;
    std::shared_ptr<CollectiveKeys> keys_;
    std::optional<fabric::NodeMemory> memory_;
    std::array<Called, wire::calls_kept> called_;
};

/// make_known() lets calls on the context be compared, until forget() (call_comparison.cpp).
void make_known(CollectiveContext& collective_context);
void forget(CollectiveContext& collective_context);

/// Gives a communicator that crosses nodes its context for collectives on a shadow communicator that has been
/// compared.
void equip(Communicator& comm, const TagBlocks& blocks);
/// Takes the context away; the shadow communicator is freed with its last context. No collective may be under way.
void unequip(Communicator& comm);
/// Waits until no collective is under way.
void finish_collectives(Communicator& comm);

}  // namespace mpisec::shim
