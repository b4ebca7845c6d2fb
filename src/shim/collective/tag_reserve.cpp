#include "shim/collective/tag_reserve.hpp"

#include <algorithm>
#include <numeric>

#include "shim/collective/collectives.hpp"
#include "shim/p2p/realms.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/runtime/state.hpp"

namespace mpisec::shim {

/// Under the Guard.
struct TagReserve {
    int first = 0;
    std::vector<bool> held;  ///< by this rank
};

namespace {

/// The most candidates that are looked at: where that is not enough, nearly the whole reserve is in use.
constexpr int most_attempts = 256;

/// The block is free again when the last collective context in it is destroyed. A member that has freed its communicator
/// has received all that was sent to it there, and a member that has not yet freed it does not agree to the block's next
/// use. So the block can be used again, unlike the blocks that a parent hands down.
TagBlocks block_of_reserve(int index) {
    std::vector<std::int32_t> everyone(static_cast<std::size_t>(state.world.size));
    std::iota(everyone.begin(), everyone.end(), 0);
    std::shared_ptr<ShadowCommunicator> shadow(
        new ShadowCommunicator(state.world.channel, std::move(everyone)), [index](ShadowCommunicator* ended) {
            Guard guard;
            delete ended;
            process.tag_reserve->held[static_cast<std::size_t>(index)] = false;
        });
    return {std::move(shadow), process.tag_reserve->first + index, 1};
}

}  // namespace

void set_reserve(int first_block, int blocks) {
    process.tag_reserve->first = first_block;
    process.tag_reserve->held.assign(static_cast<std::size_t>(std::max(blocks, 0)), false);
}

ReserveAgreement::ReserveAgreement(const char* procedure, Communicator& comm, const wire::ContextId& context)
    : procedure_(procedure),
      comm_(comm),
      collective_context_(comm.collective_context->for_persistent(comm.persistent_collectives++)),
      start_(load_le<std::uint32_t>(context.data())),
      stride_(load_le<std::uint32_t>(context.data() + sizeof(std::uint32_t)) | 1),
      held_by_(comm.collective_context->members().size()) {
    ++comm_.collectives;  // MPI_Comm_free waits for it: the next attempt needs the communicator
    attempt();
}

ReserveAgreement::~ReserveAgreement() {
    if (exchange_ && held_) process.tag_reserve->held[static_cast<std::size_t>(candidate_)] = false;
    if (exchange_) --comm_.collectives;
}

void ReserveAgreement::attempt() {
    const auto turn = static_cast<std::uint32_t>(attempts_++);
    candidate_ = static_cast<int>((start_ + turn * stride_) % process.tag_reserve->held.size());
    auto candidate = process.tag_reserve->held[static_cast<std::size_t>(candidate_)];
    held_ = !candidate;
    candidate = true;
    auto plan = comm_.inter ? plan::Allgather_of_both(procedure_, &held_, 1, held_by_.data(), comm_.handle)
                            : plan::Allgather(procedure_, &held_, 1, constants.byte, held_by_.data(), 1,
                                              constants.byte, comm_.handle);
    exchange_ = begin_collective(std::move(plan), collective_context_);
}

void ReserveAgreement::conclude() {
    error_ = exchange_->outcome().error;
    const bool agreed =
        error_ == MPI_SUCCESS && std::ranges::all_of(held_by_, [](auto held) { return held == 1; });
    if (agreed)
        blocks_ = block_of_reserve(candidate_);
    else if (held_)
        process.tag_reserve->held[static_cast<std::size_t>(candidate_)] = false;
    if (!agreed && error_ == MPI_SUCCESS && attempts_ < most_attempts) return attempt();
    exchange_.reset();
    --comm_.collectives;
}

bool ReserveAgreement::advance() {
    while (exchange_ && exchange_->advance()) conclude();
    return !exchange_;
}

std::unique_ptr<ReserveAgreement> agree_on_block(const char* procedure, Communicator& comm,
                                                 const wire::ContextId& context) {
    // Only the world has a reserve.
    if (process.tag_reserve->held.empty() || &realm_of(comm.members) != &state.world) return nullptr;
    return std::make_unique<ReserveAgreement>(procedure, comm, context);
}

}  // namespace mpisec::shim
