#include "shim/p2p/asides.hpp"

#include <mpi.h>

#include <utility>

#include "shim/p2p/communicator.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/pmpi/status.hpp"
#include "shim/runtime/watchdog.hpp"

namespace mpisec::shim {
namespace {

bool matches(const Arrival& arrival, int source, int tag) {
    return (source == MPI_ANY_SOURCE || source == arrival.source) &&
           (tag == MPI_ANY_TAG || tag == arrival.tag);
}

/// The earliest sent of the messages set aside that match, from the source of the first that matches.
Arrival* earliest(Communicator& comm, int source, int tag) {
    Arrival* best = nullptr;
    for (Arrival& arrival : comm.asides) {
        if (!matches(arrival, source, tag)) continue;
        if (!best) {
            best = &arrival;
            source = arrival.source;
        } else if (arrival.counter < best->counter) {
            best = &arrival;
        }
    }
    return best;
}

}  // namespace

int set_aside(Communicator& comm, MPI_Message message, const MPI_Status& status, Arrival*& arrival) {
    const std::size_t bytes = wire_bytes_of(status);
    PostedReceive position;
    comm.post(position);
    Arrival taken;
    taken.source = status.MPI_SOURCE;
    taken.tag = status.MPI_TAG;
    taken.wire = Buffer(bytes + 1);
    WaitScope waiting("a probe (the start of a large message)", taken.source, taken.tag);
    const int code =
        real.Mrecv(taken.wire.data(), static_cast<int>(bytes), constants.byte, &message, MPI_STATUS_IGNORE);
    comm.unpost(position);
    if (code != MPI_SUCCESS) return code;
    accept(taken, comm, taken.wire.data(), bytes, position.position, nullptr, 0);
    comm.asides.push_back(std::move(taken));
    arrival = &comm.asides.back();
    return MPI_SUCCESS;
}

Arrival* find_aside(Communicator& comm, int source, int tag) {
    Arrival* found = earliest(comm, source, tag);
    if (!found || tag != MPI_ANY_TAG) return found;
    int flag = 0;
    MPI_Message message;
    MPI_Status status;
    if (real.Improbe(found->source, MPI_ANY_TAG, comm.handle, &flag, &message, &status) != MPI_SUCCESS ||
        !flag)
        return found;
    Arrival* earlier = nullptr;
    if (set_aside(comm, message, status, earlier) != MPI_SUCCESS) return found;
    return earliest(comm, found->source, tag);
}

bool take_aside(Communicator& comm, int source, int tag, Arrival& arrival) {
    Arrival* found = find_aside(comm, source, tag);
    if (!found) return false;
    arrival = std::move(*found);
    comm.asides.remove_if([&](const Arrival& mine) { return &mine == found; });
    return true;
}

}  // namespace mpisec::shim
