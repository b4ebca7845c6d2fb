// Partitioned messages (docs/protocol.md, "Partitioned messages"; MPI standard chapter 4.2): what their two
// ends have in common.
//
//   1 match     both ranks count the initializations per communicator, rank and tag: the n-th at one end
//               belongs to the n-th at the other, so both derive the same name without exchanging anything
//   2 layout    at its first start the sender says how it cuts the message
//   3 ready     at each start the receiver says that it is ready, and which tag the pieces have
//   4 pieces    sealed as their partitions become ready, under a key of this start; each names its place
//
// The MPI library's own partitioned procedures take no part: pieces and notices travel on the private channel.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "aead/aead.hpp"
#include "keys/secret.hpp"
#include "shim/p2p/communicator.hpp"
#include "shim/p2p/datatype.hpp"
#include "shim/p2p/operation.hpp"
#include "wire/partitioned.hpp"

namespace mpisec::shim {

/// The arguments of MPI_Psend_init or MPI_Precv_init.
struct PartitionedSpec {
    void* buf = nullptr;
    int partitions = 0;
    MPI_Count count = 0;
    MPI_Datatype type{};
    int peer = 0;
    int tag = 0;
    const char* call = "";
};

/// No rank of the job cuts larger pieces, because the settings are the same everywhere.
std::uint64_t most_piece_bytes();
/// How many pieces of a message may be under way at once when its receiver is ready: it has that many receives.
std::uint64_t pieces_in_flight(const wire::PartitionLayout& layout);
/// How many pieces to one rank may be under way before their receiver has said that it is ready. MPI libraries tolerate few unexpected
/// messages.
inline constexpr unsigned most_early_pieces = 8;

/// One end of a partitioned message, from its initialization to MPI_Request_free. Under the Guard.
class PartitionedEnd {
  public:
    enum Direction : std::uint8_t { sending, receiving };
    /// `comm` is null for MPI_PROC_NULL.
    PartitionedEnd(const PartitionedSpec& spec, Communicator* comm, const TypeFacts& facts, bool sealed,
                   Direction direction);
    virtual ~PartitionedEnd();
    PartitionedEnd(const PartitionedEnd&) = delete;
    PartitionedEnd& operator=(const PartitionedEnd&) = delete;

    virtual void heard(const wire::PartitionNotice& notice) = 0;
    void tell(const wire::PartitionNotice& notice) const;
    /// An MPI error code when a notice from the other end's rank was not accepted, or when that rank reports the same of a notice of this
    /// rank: it is then no longer known what will arrive.
    int lost() const;
    /// The beginning of partition `partition` in the user's buffer, and of its data if it is one run of bytes.
    std::uint8_t* partition(std::uint64_t partition) const;
    std::uint64_t partition_bytes() const { return partition_bytes_; }
    std::uint64_t partitions() const { return static_cast<std::uint64_t>(spec.partitions); }

    const PartitionedSpec spec;
    Communicator* const comm;
    const TypeFacts facts;
    const bool sealed;  ///< else the pieces stay on this node, and are plain
    const Direction direction;
    const std::int32_t world_peer;
    wire::ContextId name{};   ///< of the message, the same at both ends
    MPI_Request request{};    ///< of the program
    std::uint64_t start = 0;  ///< starts so far

  private:
    std::uint64_t partition_bytes_;
    std::ptrdiff_t partition_extent_ = 0;
};

/// The keys of one start. Several threads may seal at once, each with a copy of its own.
class StartKeys {
  public:
    explicit StartKeys(const PartitionedEnd& end);
    aead::KeySet take();  ///< under the Guard, as give() is
    void give(aead::KeySet keys) { unused_.push_back(std::move(keys)); }

  private:
    keys::Secret key_;
    std::vector<aead::KeySet> unused_;
};

/// Receives the notices of other ranks and hands them over to their ends. Under the Guard.
void hear_partition_notices();
/// The same in one pass of many, for a caller that waits for no notice but must hear that the other end has failed.
class NoticeWatch {
  public:
    void hear_now_and_then() {
        if (++passes_ % passes_between_looks == 0) hear_partition_notices();
    }

  private:
    static constexpr unsigned passes_between_looks = 64;
    unsigned passes_ = 0;
};

/// Tags of pieces, which a receiver gives to each of its senders; −1 when none is left.
int take_piece_tag(std::int32_t world_source);
void give_back_piece_tag(std::int32_t world_source, int tag);
/// The number of pieces under way to a rank that has not said that it is ready for them.
unsigned& early_pieces_to(std::int32_t world_peer);

/// Keeps the buffers, which MPI still uses, of a message that was given up.
void abandon(std::vector<Buffer> buffers);

/// The program has freed the communicator, so that no message is initialized there any more. Those that were may still be started: they
/// keep their names, which no other communicator's messages get.
void forget_partitioned(const Communicator& comm);

/// MPIsec's life ends, or that of a session before another one, in which numbers of processes mean others. No end is left.
void forget_partitioned_messages();

/// The end that a request of the program stands for; null when it stands for something else.
std::shared_ptr<PartitionedEnd> find_partitioned(MPI_Request request);
void enter_partitioned(MPI_Request request, const std::shared_ptr<PartitionedEnd>& end);

}  // namespace mpisec::shim
