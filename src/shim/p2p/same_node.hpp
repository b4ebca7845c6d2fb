// Verified messages between ranks of one node (MPISEC_SAME_NODE=verify; docs/protocol.md, "Same-node records"). They go to MPI unchanged,
// as plain ones do (M1). But MPI libraries also take a message from the network for one of the node when its header says so. Therefore the
// sender announces its message in memory that only the node's ranks share, and leaves a record there, and the receiver compares: a message
// without a record is rejected (S2).
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <span>

#include "shim/p2p/operation.hpp"

namespace mpisec::fabric {
struct SentRecord;
}

namespace mpisec::shim {

/// Whether this job's setting and this node ask for verification; valid from establish() on.
bool verifies_same_node();

/// Makes the node's memory for records, before the first communicator is described. Ends the job when there is none.
void open_records();
void close_records();

/// The record of a message that MPI has.
struct LeftRecord {
    unsigned node_peer;
    std::uint64_t context;
    int tag;
    std::uint32_t number;
    fabric::SentRecord* record;
};
/// Announces a message before it is handed to MPI: its receiver will then wait for its record. One of the next two functions must follow,
/// before this rank waits for anything outside MPI. All under the Guard, which orders records as MPI orders the messages.
void announce(const SendSpec& spec, const Communicator& comm);
/// MPI did not take the message.
void retract(const SendSpec& spec, const Communicator& comm);
/// MPI has the message, and may move it while it is hashed here.
LeftRecord leave_record(const SendSpec& spec, const Communicator& comm, const TypeFacts& facts);
/// MPI has cancelled the message.
void withdraw(const LeftRecord& record);

/// Before a blocking receive of a short message from this rank: waits a little for its record, whose cache
/// line is then here, as MPI has the message.
void expect_record(const Communicator& comm, int peer);

/// Where a message is received.
struct Landing {
    void* buf;
    MPI_Count count;
    MPI_Datatype type;
    const TypeFacts& facts;
};
struct Judgement {
    int code;
    bool raised = false;  ///< by MPI
};
/// MPI's receive at `position` has ended with `code` and `status`: compares what it received with the records. A message that nobody on
/// this node sent is reported and wiped; `status` then says that nothing was received. Under the Guard.
Judgement judge(Communicator& comm, std::uint64_t position, const Landing& landing, int code,
                MPI_Status& status);

/// The same for the messages of collectives between ranks of a node, on the shadow communicator. Under the
/// Guard.
void announce_part(const wire::ContextId& context, std::int32_t world_peer, int tag,
                   std::span<const std::uint8_t> bytes);
/// A receive's place among those from one source, and the place of the first one that is not finished.
struct ReceiveOrder {
    std::uint64_t position;
    std::uint64_t oldest;
};
bool part_was_sent(const wire::ContextId& context, std::int32_t world_peer, int tag,
                   std::span<const std::uint8_t> bytes, ReceiveOrder order);

/// Sends and receives of Route::verified. Under the Guard, except for the blocking ones.
int send_verified(const SendSpec& spec, Communicator& comm);
int isend_verified(const SendSpec& spec, Communicator& comm, MPI_Request* request);
/// MPI_Cancel of a request of MPI's own: the record of a send that MPI gives up is withdrawn.
int cancel_verified(MPI_Request* request);
int receive_verified(const ReceiveSpec& spec, Communicator& comm, MPI_Status* status);
/// The same for a message that a matched probe took.
int receive_matched_verified(const ReceiveSpec& spec, Communicator& comm, MPI_Message* message,
                             MPI_Status* status);
std::unique_ptr<Operation> start_verified_send(const SendSpec& spec, Communicator& comm);
std::unique_ptr<Operation> start_verified_receive(const ReceiveSpec& spec, Communicator& comm);
std::unique_ptr<Operation> start_verified_mrecv(const ReceiveSpec& spec, Communicator& comm,
                                                MPI_Message message, std::unique_ptr<PostedReceive> posted);

/// The name of the memory that the ranks of this context on `node` share; only the job's ranks know it.
std::string memory_name(const wire::ContextId& context, int node);

}  // namespace mpisec::shim
