// The receiving end of a partitioned message, and one start of it.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "shim/partitioned/messages.hpp"

namespace mpisec::shim {

class PartitionedReceive;

class ReceiveEnd final : public PartitionedEnd {
  public:
    ReceiveEnd(const PartitionedSpec& spec, Communicator* comm, const TypeFacts& facts, bool sealed);
    ~ReceiveEnd() override;
    void heard(const wire::PartitionNotice& notice) override { layout = notice.layout; }
    std::uint64_t capacity() const { return partitions() * partition_bytes(); }

    std::optional<wire::PartitionLayout> layout;  ///< the sender's
    int piece_tag = -1;                           ///< −1: none was left
    bool attacked = false;                        ///< messages that nobody waits for may have the tag
    PartitionedReceive* active = nullptr;         ///< null: inactive
};

class PartitionedReceive final : public Operation {
  public:
    explicit PartitionedReceive(std::shared_ptr<ReceiveEnd> end);
    ~PartitionedReceive() override;
    bool needs_progress() const override { return true; }
    WaitInfo wait_info() const override { return {end_->spec.call, end_->spec.peer, end_->spec.tag}; }

    /// Whether this partition of the receiver's is in the user's buffer. `partition` must be in range.
    bool arrived(int partition) const;
    /// What has gone wrong so far: the operation may still be receiving the rest of the message.
    int error() const { return error_; }

  private:
    void post(std::size_t slot);
    void begin();
    void receive();
    void check(std::size_t slot, int code, const MPI_Status& status);
    void open(std::uint64_t piece, const std::uint8_t* wire);
    void place(std::uint64_t offset, std::uint64_t bytes);
    void deliver_rest();
    void step() override;

    std::shared_ptr<ReceiveEnd> end_;
    std::uint64_t start_;
    std::unique_ptr<StartKeys> keys_;
    Buffer packed_;  ///< for the whole message, where the datatype is not one run of bytes
    bool begun_ = false;
    std::uint64_t posted_ = 0;   ///< receives so far
    std::uint64_t matched_ = 0;  ///< those that have received something
    std::vector<Buffer> wires_;
    std::vector<MPI_Request> requests_;
    std::vector<int> finished_;  ///< room for MPI_Testsome
    std::vector<MPI_Status> statuses_;
    std::vector<bool> pieces_;             ///< which were accepted
    std::vector<std::uint64_t> in_place_;  ///< bytes of each of the receiver's partitions
    NoticeWatch notices_;
    int error_ = MPI_SUCCESS;
};

}  // namespace mpisec::shim
