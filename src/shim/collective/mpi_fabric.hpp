// The fabric of a real job: messages on the shadow communicator, memory of the node, sealed blocks under the
// communicator's keys. One per collective call.
#pragma once

#include <mpi.h>

#include <deque>
#include <vector>

#include "fabric/fabric.hpp"
#include "shim/collective/collective_context.hpp"
#include "shim/runtime/pool.hpp"

namespace mpisec::shim {

/// Lets MPI move messages during a wait in shared memory: another rank may need one of this rank's messages to get to
/// the point at which this rank waits for it (M5). Under the Guard.
void drive_progress();

class MpiFabric final : public fabric::Fabric {
  public:
    /// All ranks of the context take part. `procedure` is named in reports of violations.
    MpiFabric(const CollectiveContext& collective_context, CollectiveSequence sequence,
              const char* procedure);
    /// Only `participants` (ranks of the context, this one among them) take part; their places in the list are the
    /// fabric's ranks, each of them a node of its own.
    MpiFabric(const CollectiveContext& collective_context, CollectiveSequence sequence, const char* procedure,
              std::vector<int> participants);
    ~MpiFabric() override;

    /// Whether the node's memory is free for this call.
    bool ready();
    /// Resumes the coroutine as long as what it waits for has finished.
    void advance();
    /// The coroutine has ended.
    void leave();
    /// Cancels what it still waits to receive.
    void cancel();
    /// An MPI error code for what made it fail.
    int error() const { return error_; }
    /// Whether that error is the death of a process or a revoked communicator. The fabric then sends nothing and waits for
    /// nothing any more, and must be given up.
    bool lost() const { return lost_; }

    void copy(fabric::PlaintextBuffer to, fabric::Plaintext from) override;
    void combine(const fabric::Reduction& reduction, fabric::PlaintextBuffer inout,
                 fabric::Plaintext in) override;

  protected:
    unsigned start_send(int to, std::span<std::uint8_t> bytes, bool sealed) override;
    unsigned start_receive(int from, std::span<std::uint8_t> room, bool sealed) override;
    unsigned start_barrier() override;
    bool finished(unsigned number) override;
    void when_finished(unsigned number, std::coroutine_handle<> waiter) override;
    void finish(unsigned number) override;
    void do_seal(std::span<std::uint8_t> to, fabric::Plaintext from,
                 fabric::SealedBlock sealed_block) override;
    void misused(fabric::SealedBlock sealed_block) override;
    bool do_open(fabric::PlaintextBuffer to, fabric::Plaintext from,
                 fabric::SealedBlock sealed_block) override;
    std::span<std::uint8_t> room(std::size_t bytes) override;
    std::span<std::uint8_t> shared_room(std::size_t bytes) override;

  private:
    /// What stands behind a fabric::Pending.
    struct Step {
        MPI_Request request{};
        std::vector<MPI_Request> more;  ///< further parts of a message that is too long for one
        std::size_t bytes = 0;
        bool receives = false, sealed = false;
        std::uint8_t* data = nullptr;  ///< where it is received, when it is compared with the sender's record
        std::int32_t peer = 0;         ///< world rank
        std::uint64_t position = 0;    ///< of the first part among this collective's receives
        std::size_t parts_open = 0;    ///< not received yet
        std::uint64_t barrier = 0;     ///< 0: a message
        Buffer zeros;                  ///< what a failed rank sends instead
        std::size_t part_bytes(std::size_t part) const;
    };
    template <class Start>
    void start_parts(Step& step, Start start);
    unsigned take_step();
    int rank_in_context(int rank) const {
        return participants_.empty() ? rank : participants_[static_cast<std::size_t>(rank)];
    }
    void spread_failure();
    void note(int code);
    int sealer_of(fabric::SealedBlock sealed_block) const;
    static void wipe(const Step& step, std::size_t part);
    bool done(Step& step, MPI_Request& request, std::size_t part);
    void conclude(Step& step, int code, const MPI_Status& status, std::size_t part);
    bool verified(Step& step, std::size_t part);
    void violation(int sealer);
    bool has_own_key(std::size_t bytes, fabric::SealedBlock sealed_block) const;
    std::uint32_t index_of(fabric::SealedBlock sealed_block) const;

    const CollectiveContext& collective_context_;
    const CollectiveSequence sequence_;
    const std::uint64_t turn_ = 0;  ///< in the sequence's slot
    const char* procedure_;
    const Traffic traffic_;
    const std::vector<int> participants_;
    const fabric::Topology own_topology_;  ///< of the participants
    std::deque<Step> steps_;               // a deque's elements stay where they are: MPI writes to requests
    std::vector<unsigned> free_steps_;
    std::vector<Buffer> rooms_;
    unsigned awaited_ = 0;
    std::coroutine_handle<> waiter_;
    bool entered_ = false;
    std::uint64_t next_position_ = 0;
    unsigned polls_ = 0;
    int error_ = MPI_SUCCESS;
    bool lost_ = false;
};

}  // namespace mpisec::shim
