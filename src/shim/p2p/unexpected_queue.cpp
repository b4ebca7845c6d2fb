#include "shim/p2p/unexpected_queue.hpp"

#include <mpi.h>

#include <utility>

#include "shim/p2p/communicator.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/pmpi/status.hpp"
#include "shim/runtime/watchdog.hpp"

namespace mpisec::shim {
namespace {

bool matches(const ReceivedMessage& received, int source, int tag) {
    return (source == MPI_ANY_SOURCE || source == received.source) &&
           (tag == MPI_ANY_TAG || tag == received.tag);
}

/// The earliest sent of the queued messages that match and come from the source of the first that matches.
ReceivedMessage* earliest(Communicator& comm, int source, int tag) {
    ReceivedMessage* best = nullptr;
    for (ReceivedMessage& received : comm.unexpected) {
        if (!matches(received, source, tag)) continue;
        if (!best) {
            best = &received;
            source = received.source;
        } else if (received.counter < best->counter) {
            best = &received;
        }
    }
    return best;
}

}  // namespace

int enqueue_unexpected(Communicator& comm, MPI_Message message, const MPI_Status& status, bool any_tag,
                       ReceivedMessage*& received) {
    const std::size_t bytes = probed_room(comm, 0, wire_bytes_of(status));
    PostedReceive position;
    comm.post(position);
    ReceivedMessage taken;
    taken.source = status.MPI_SOURCE;
    taken.tag = status.MPI_TAG;
    taken.is_first = any_tag;
    taken.wire = Buffer(bytes + 1);
    WaitScope waiting("a probe (the message that it found)", taken.source, taken.tag);
    const int code =
        real.Mrecv(taken.wire.data(), static_cast<int>(bytes), constants.byte, &message, MPI_STATUS_IGNORE);
    comm.unpost(position);
    if (is_overlong(code, comm, status))
        taken.error = reject_overlong(comm, status, position.position);
    else if (code != MPI_SUCCESS)
        return code;
    else
        verify(taken, comm, {taken.wire.data(), bytes}, {}, {position.position, any_tag});
    comm.unexpected.push_back(std::move(taken));
    received = &comm.unexpected.back();
    return MPI_SUCCESS;
}

ReceivedMessage* find_unexpected(Communicator& comm, int source, int tag) {
    ReceivedMessage* found = earliest(comm, source, tag);
    // Taking a message out of MPI completes a synchronous send, so no more are taken out than needed.
    if (!found || tag != MPI_ANY_TAG || found->is_first) return found;
    int flag = 0;
    MPI_Message message;
    MPI_Status status;
    if (real.Improbe(found->source, MPI_ANY_TAG, comm.handle, &flag, &message, &status) != MPI_SUCCESS)
        return found;
    if (!flag) {
        found->is_first = true;
        return found;
    }
    status = from_named_source(found->source, status);
    ReceivedMessage* earlier = nullptr;
    if (enqueue_unexpected(comm, message, status, true, earlier) != MPI_SUCCESS) return found;
    found = earliest(comm, found->source, tag);
    found->is_first = true;
    return found;
}

bool take_unexpected(Communicator& comm, int source, int tag, ReceivedMessage& received) {
    ReceivedMessage* found = find_unexpected(comm, source, tag);
    if (!found) return false;
    received = std::move(*found);
    comm.unexpected.remove_if([&](const ReceivedMessage& mine) { return &mine == found; });
    return true;
}

}  // namespace mpisec::shim
