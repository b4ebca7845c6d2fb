// A barrier of MPIsec's own, on the private channel, that keeps started operations moving (M5), and small exchanges among its members.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>

#include "shim/p2p/communicator.hpp"

namespace mpisec::shim {

/// Waits until every member is here, and keeps all started operations moving: the next step blocks inside MPI on the members, and none of
/// them may still need this rank to receive a large message (M5). Does nothing when no member is on another node.
int progress_barrier(Communicator& comm);
int progress_barrier(Ranks members, const wire::ContextId& context);
/// For use before the MPI library's own blocking collective inside a node: the same, and raises errors.
int progress_barrier_of_members(MPI_Comm comm);
/// Exchanges `bytes` bytes with another world rank, and keeps all started operations moving; sealed unless that rank is on this node. Both
/// ranks call it, with the same context. hand_down() brings bytes from members[root] to all members in the same way. Both functions return
/// an MPI error code that has not been raised.
int exchange_with(std::int32_t world, const void* out, void* in, std::size_t bytes,
                  const wire::ContextId& context);
int hand_down(Ranks members, std::size_t root, void* data, std::size_t bytes, const wire::ContextId& context);

/// The same for all members of an intra-communicator, from its rank `root`; also where all are proven to be on one node.
int hand_down(const Communicator& comm, int root, void* data, std::size_t bytes);

}  // namespace mpisec::shim
