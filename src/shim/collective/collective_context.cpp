#include "shim/collective/collective_context.hpp"

#include <algorithm>

#include "keys/hkdf.hpp"
#include "keys/schedule.hpp"
#include "shim/collective/tag_reserve.hpp"
#include "shim/p2p/backoff.hpp"
#include "shim/p2p/channel_tags.hpp"
#include "shim/p2p/communicator.hpp"
#include "shim/p2p/operation.hpp"
#include "shim/p2p/realms.hpp"
#include "shim/p2p/same_node.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/runtime/state.hpp"
#include "shim/runtime/watchdog.hpp"

namespace mpisec::shim {
namespace {

// Tags tell apart the collectives that are under way in a block at one time; persistent collectives have the upper half.
constexpr int half_of_tags = 16 * 1024;
constexpr int tags_of_block = 2 * half_of_tags;
// A communicator gives one in this many of the blocks that it has left to each communicator made from it.
constexpr int share_of_child = 64;
// One in this many of the channel's blocks belongs to no communicator at first (tag_reserve.hpp).
constexpr int part_of_reserve = 4;
// Blocking collectives, of which there is one at a time, take turns in slots of their own, so that their memory stays
// in the caches. The first two of these:
constexpr unsigned slots_of_communicator = 6;
// A persistent collective is started again when it has ended here; another rank may still be in it.
constexpr unsigned slots_of_persistent = 2;

/// Few enough that the sealed blocks under one key, of all ranks together, stay below the key's limits (S6;
/// wire::has_own_key).
std::uint64_t collectives_per_epoch(std::size_t ranks) {
    const std::uint64_t sealed_blocks = std::min<std::uint64_t>(
        state.settings.rekey_messages, state.settings.rekey_bytes / wire::sealed_block_key_threshold);
    return std::clamp<std::uint64_t>(sealed_blocks / (wire::common_key_sealed_blocks * ranks * ranks), 1,
                                     1u << 31);
}

/// Empty where the shadow communicator's ranks are the same world ranks in the same order.
std::vector<int> ranks_on(const ShadowCommunicator& shadow, Ranks members) {
    if (members == shadow.members()) return {};
    std::vector<int> ranks = places_in(members, shadow.members());
    if (std::ranges::find(ranks, static_cast<int>(shadow.members().size())) != ranks.end())
        abort_job(
            "a communicator has a rank that is not in the one it was made from; this is a fault of MPIsec");
    return ranks;
}

wire::ContextId persistent_context(const wire::ContextId& context, std::uint64_t number) {
    std::string bytes = "mpisec persistent collective";
    bytes.append(reinterpret_cast<const char*>(context.data()), context.size());
    bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
    const keys::Digest digest = keys::sha256(keys::as_bytes(bytes));
    wire::ContextId derived;
    std::copy_n(digest.begin(), derived.size(), derived.begin());
    return derived;
}

}  // namespace

ShadowCommunicator::ShadowCommunicator(MPI_Comm handle, Ranks members) : handle_(handle), members_(members) {
    real.Comm_set_errhandler(handle_, constants.errors_return);
}

ShadowCommunicator::~ShadowCommunicator() {
    // MPI_Comm_free is collective, but in the MPI libraries it waits for no other rank. Communicators that the program
    // leaves to MPI_Finalize are destroyed in a different order on each rank, so MPI frees those.
    if (!state.ending && handle_ != state.world.channel) real.Comm_free(&handle_);
}

TagBlocks all_blocks(MPI_Comm shadow, Ranks members) {
    const std::int64_t tags = std::int64_t{state.tag_upper_bound} + 1;
    return {std::make_shared<ShadowCommunicator>(shadow, members), 0,
            static_cast<int>(std::max<std::int64_t>(tags / tags_of_block, 1))};
}

TagBlocks blocks_of_channel(Ranks members) {
    const int first = (first_collective_tag() + tags_of_block - 1) / tags_of_block;
    const int count = collective_tags_end() / tags_of_block - first;
    if (count < 1) return {};
    const int reserved = count / part_of_reserve;
    set_reserve(first + count - reserved, reserved);
    return {std::make_shared<ShadowCommunicator>(state.world.channel, members), first, count - reserved};
}

CollectiveContext::CollectiveContext(const TagBlocks& blocks, Ranks members, const wire::ContextId& context)
    : shadow_(blocks.shadow),
      spare_{blocks.shadow, blocks.first + 1, blocks.count - 1},
      context_(context),
      rank_(static_cast<int>(std::ranges::find(members, own_number(members)) - members.begin())),
      members_(members),
      shadow_ranks_(ranks_on(*shadow_, members_)),
      first_tag_(blocks.first * tags_of_block),
      tags_(half_of_tags),
      blocking_slots_(2),
      slots_(slots_of_communicator),
      tags_for_persistent_{first_tag_ + half_of_tags, half_of_tags, 0},
      numbers_in_epoch_(collectives_per_epoch(members_.size())) {
    make_known(*this);
}

CollectiveContext::CollectiveContext(const CollectiveContext& beside, std::uint64_t number, int tag)
    : shadow_(beside.shadow_),
      context_(persistent_context(beside.context_, number)),
      rank_(beside.rank_),
      members_(beside.members_),
      shadow_ranks_(beside.shadow_ranks_),
      first_tag_(tag),
      tags_(1),
      blocking_slots_(0),
      slots_(slots_of_persistent),
      numbers_in_epoch_(beside.numbers_in_epoch_) {
    make_known(*this);
}

CollectiveContext::~CollectiveContext() {
    forget(*this);
}

std::unique_ptr<CollectiveContext> CollectiveContext::for_persistent(std::uint64_t number) {
    return std::unique_ptr<CollectiveContext>(new CollectiveContext(*this, number, tag_for_persistent()));
}

/// Only where the communicator has no further blocks on its shadow communicator are tags used again.
int CollectiveContext::tag_for_persistent() {
    auto& [first, count, used] = tags_for_persistent_;
    if (used == count) {
        // Not where the blocks that are left are on another shadow communicator (give_blocks()).
        if (const TagBlocks more = spare_.shadow == shadow_ ? take_blocks() : TagBlocks{}; !more.none()) {
            first = more.first * tags_of_block;
            count = more.count * tags_of_block;
        }
        used = 0;
    }
    return first + used++;
}

TagBlocks CollectiveContext::take_blocks() {
    if (spare_.none()) return {};
    const int count = std::max(spare_.count / share_of_child, 1);
    TagBlocks taken{spare_.shadow, spare_.first, count};
    spare_.first += count;
    spare_.count -= count;
    if (spare_.none()) spare_ = {};  // lets go of the shadow communicator, which may be freed now
    return taken;
}

CollectiveSequence CollectiveContext::next(bool blocking) {
    CollectiveSequence sequence;
    sequence.number = next_number_++;
    const std::uint64_t epoch = sequence.number / numbers_in_epoch_;
    sequence.number_in_epoch = static_cast<std::uint32_t>(sequence.number % numbers_in_epoch_);
    if (!keys_ || keys_->epoch != epoch) {
        keys::CollectiveSecret secret =
            keys::collective_secret(*realm_of(members_).job_secret, context_, epoch);
        keys_ = std::make_shared<CollectiveKeys>(CollectiveKeys{
            epoch, aead::KeySet(state.world.selection, secret.aead.data()), std::move(secret.sealed_block)});
    }
    sequence.keys = keys_;
    sequence.tag = first_tag_ + static_cast<int>(sequence.number % static_cast<std::uint64_t>(tags_));
    sequence.slot = next_slot(blocking);
    return sequence;
}

Result<void> CollectiveContext::attach_memory() {
    const int node = topology().node(rank_);
    const auto peers = static_cast<unsigned>(topology().node_size(node));
    if (memory_ || peers == 1) return {};
    auto memory = fabric::NodeMemory::attach(memory_name(context_, node), peers, slots_);
    if (!memory) return tl::unexpected(memory.error());
    memory_.emplace(std::move(*memory));
    return {};
}

fabric::NodeMemory::Slot* CollectiveContext::next_slot(bool blocking) {
    if (const Result<void> attached = attach_memory(); !attached)
        abort_job("For collectives, " + attached.error().message + ".");
    if (!memory_) return nullptr;
    const std::uint64_t turn = blocking ? next_blocking_++ % blocking_slots_
                                        : blocking_slots_ + next_other_++ % (slots_ - blocking_slots_);
    return &memory_->slot(static_cast<unsigned>(turn));
}

void equip(Communicator& comm, const TagBlocks& blocks) {
    comm.collective_context =
        std::make_shared<CollectiveContext>(blocks, members_of_both(membership_of(comm)), comm.context);
}

void finish_collectives(Communicator& comm) {
    WaitScope waiting("MPI_Comm_free (collectives under way)", MPI_ANY_SOURCE, MPI_ANY_TAG);
    Backoff backoff;
    auto under_way = [&] {
        Guard guard;
        return comm.collectives > 0;
    };
    while (under_way()) {
        progress();
        backoff.pause();
    }
}

void unequip(Communicator& comm) {
    comm.collective_context.reset();
}

}  // namespace mpisec::shim
