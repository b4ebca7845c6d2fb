// Unexpected messages (M4): a probe must open a large message's header to know its length, and so takes the
// message out of MPI. Later probes and receives of the communicator look here first.
#pragma once

#include <cstddef>

#include "shim/p2p/verify.hpp"

namespace mpisec::shim {

/// The message that a receive with this source and tag must get, if it is in the queue. With MPI_ANY_TAG a message still in MPI may have
/// been sent earlier: then that message is queued too, and the pair's counters decide (MPI standard section 3.5, order). Null when MPI
/// itself holds the message that comes first, or when there is none. Under the Guard.
ReceivedMessage* find_unexpected(Communicator& comm, int source, int tag);

/// The same, and takes it out of the queue.
bool take_unexpected(Communicator& comm, int source, int tag, ReceivedMessage& received);

/// Receives the message that a matched probe took from MPI, verifies and queues it. Blocks for as long
/// as MPI needs to hand over a message that has begun to arrive. `any_tag`: the probe asked for MPI_ANY_TAG. Returns an MPI error
/// code (raised by MPI already) when that fails; when the message is not accepted `received` carries the error.
int enqueue_unexpected(Communicator& comm, MPI_Message message, const MPI_Status& status, bool any_tag,
                       ReceivedMessage*& received);

}  // namespace mpisec::shim
