// Blocks of tags on the channel that any communicator can get: they are for one that MPI_Comm_idup makes
// where the blocks of its parent are used up. Its members have to agree on a block that is free, and none of
// them may wait for that: MPI_Comm_idup does not block, and ranks may start or complete several of them in
// different orders.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "shim/collective/collective_context.hpp"
#include "shim/p2p/communicator.hpp"
#include "shim/p2p/operation.hpp"

namespace mpisec::shim {

/// To be called in MPI_Init, before any agreement.
void set_reserve(int first_block, int blocks);

/// All members of a communicator look for a block that is free on each of them. Every attempt is a
/// non-blocking collective on a context of its own, so that neither the order in which ranks start several agreements
/// nor other collectives can hold it up. Under the Guard.
class ReserveAgreement {
  public:
    /// For a communicator made from `comm` by a call of `procedure`; `context` is the context that it will have.
    ReserveAgreement(const char* procedure, Communicator& comm, const wire::ContextId& context);
    ReserveAgreement(const ReserveAgreement&) = delete;
    ReserveAgreement& operator=(const ReserveAgreement&) = delete;
    ~ReserveAgreement();
    /// True when it has ended.
    bool advance();
    int error() const { return error_; }
    /// The block that was agreed on; none, on all members alike, when no free one was found.
    TagBlocks blocks() const { return blocks_; }

  private:
    void attempt();
    void conclude();

    const char* procedure_;
    Communicator& comm_;
    std::shared_ptr<CollectiveContext> collective_context_;
    std::uint32_t start_, stride_;
    int attempts_ = 0, candidate_ = 0, error_ = 0;
    std::uint8_t held_ = 0;              ///< the candidate was free here, and is now kept for this agreement
    std::vector<std::uint8_t> held_by_;  ///< by rank
    std::unique_ptr<Operation> exchange_;  ///< of `held_`; null when the agreement has ended
    TagBlocks blocks_;
};

/// Null where there is no reserve.
std::unique_ptr<ReserveAgreement> agree_on_block(const char* procedure, Communicator& comm,
                                                 const wire::ContextId& context);

}  // namespace mpisec::shim
