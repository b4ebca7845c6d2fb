// The sending end of a partitioned message, and one start of it.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "shim/partitioned/messages.hpp"

namespace mpisec::shim {

class PartitionedSend;

class SendEnd final : public PartitionedEnd {
  public:
    SendEnd(const PartitionedSpec& spec, Communicator* comm, const TypeFacts& facts, bool sealed);
    void heard(const wire::PartitionNotice& notice) override;

    const wire::PartitionLayout layout;
    int piece_tag = -1;                 ///< set when the receiver has told it
    std::uint64_t receiver_start = 0;   ///< the receiver is ready for starts up to this
    PartitionedSend* active = nullptr;  ///< null: inactive
};

class PartitionedSend final : public Operation {
  public:
    explicit PartitionedSend(std::shared_ptr<SendEnd> end);
    ~PartitionedSend() override;
    bool needs_progress() const override { return true; }
    WaitInfo wait_info() const override { return {end_->spec.call, end_->spec.peer, end_->spec.tag}; }

    /// For a thread that makes partitions ready: between these calls the start does not end, even if another thread waits for it and all of
    /// it has been sent. Under the Guard.
    void enter() { ++inside_; }
    void leave() { --inside_; }
    /// Marks partitions as ready, all or none: MPI_ERR_ARG when one already is. They must be in range. Takes the Guard.
    int mark_ready(const std::vector<int>& partitions);
    /// Seals and sends what may be sent. Takes the Guard, but does not hold it while it seals.
    void send_ready();
    void receiver_is_ready();

  private:
    /// A piece that waits to be sealed: its plaintext, and the buffer into which that was packed.
    struct Ready {
        std::uint64_t piece;
        const std::uint8_t* from;
        std::shared_ptr<Buffer> packed;
    };
    /// A piece that one thread seals.
    struct Sealing {
        Ready ready;
        Buffer wire;
        std::size_t wire_bytes = 0;
        aead::KeySet keys;
    };

    int enqueue(std::uint64_t partition);
    bool take(Sealing& sealing);
    void seal(Sealing& sealing);
    void hand_over(Sealing& sealing);
    void retire();
    void step() override;
    bool receiver_ready() const { return end_->receiver_start >= start_; }
    bool may_start();

    std::shared_ptr<SendEnd> end_;
    std::uint64_t start_;
    std::unique_ptr<StartKeys> keys_;
    std::vector<bool> marked_;
    std::uint64_t marked_count_ = 0;
    unsigned inside_ = 0;  ///< threads between enter() and leave()
    std::deque<Ready> ready_;
    std::vector<Buffer> wires_;  ///< of pieces that MPI has, with their requests
    std::vector<MPI_Request> requests_;
    std::vector<int> finished_;  ///< room for MPI_Testsome
    std::uint64_t sealing_ = 0;  ///< pieces that are being sealed
    std::uint64_t sent_ = 0;     ///< pieces that MPI is done with
    unsigned early_ = 0;         ///< pieces sent before the receiver said that it is ready
    NoticeWatch notices_;
    int error_ = MPI_SUCCESS;
};

}  // namespace mpisec::shim
