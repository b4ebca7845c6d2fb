// Where a message goes: to MPI unchanged, or through MPIsec.
#pragma once

#include <mpi.h>

#include "shim/p2p/communicator.hpp"
#include "shim/runtime/state.hpp"

namespace mpisec::shim {

/// `plain`: to MPI unchanged (same node, MPI_PROC_NULL, communicators that MPI itself must refuse); `sealed`:
/// through MPIsec; `mixed`: a receive that may match either (M2); `verified`: to MPI unchanged too, and
/// compared with the record that its sender left in the node's memory (same_node.hpp); `invalid`: `error`
/// says why (MPI error class).
struct Route {
    enum Kind : std::uint8_t { plain, sealed, mixed, verified, invalid } kind = plain;
    Communicator* comm = nullptr;
    int error = MPI_SUCCESS;
};

/// For a handle that find_communicator() does not know: MPI_COMM_NULL is refused by MPI, any other by MPIsec (S1).
Route route_unknown(MPI_Comm comm);

/// A message between ranks of this node. Wrong arguments are left to MPI, which refuses them, except for the rank: MPICH 5 takes the ranks
/// of a topology's parent for the topology's own, and crashes on those that the topology lacks.
inline Route route_local(Communicator* known, int peer, int tag, MPI_Count count, bool any_source,
                         bool any_tag) {
    if (!any_source && !known->has_peer(peer)) [[unlikely]]
        return {Route::invalid, known, MPI_ERR_RANK};
    const bool valid = known->verifies && (tag >= 0 || any_tag) && tag <= state.tag_upper_bound && count >= 0;
    return {valid ? Route::verified : Route::plain, known};
}

/// Serves sends and receives alike, which differ only in the wildcards that receives have.
[[gnu::always_inline]] inline Route route(int peer, int tag, MPI_Comm comm, MPI_Count count, bool any_source,
                                          bool any_tag) {
    if (peer == MPI_PROC_NULL) [[unlikely]]
        return {};
    Communicator* known = find_communicator(comm);
    if (!known) [[unlikely]]
        return route_unknown(comm);
    if (!known->seals) return route_local(known, peer, tag, count, any_source, any_tag);
    if (!any_source) {
        if (!known->has_peer(peer)) [[unlikely]]
            return {Route::invalid, known, MPI_ERR_RANK};
        if (known->is_local(peer)) return route_local(known, peer, tag, count, any_source, any_tag);
    }
    if ((tag < 0 && !any_tag) || tag > state.tag_upper_bound) [[unlikely]]
        return {Route::invalid, known, MPI_ERR_TAG};
    if (count < 0) [[unlikely]]
        return {Route::invalid, known, MPI_ERR_COUNT};
    return {any_source && known->mixed ? Route::mixed : Route::sealed, known};
}
inline Route route_send(int peer, int tag, MPI_Comm comm, MPI_Count count) {
    return route(peer, tag, comm, count, false, false);
}
inline Route route_receive(int peer, int tag, MPI_Comm comm, MPI_Count count) {
    return route(peer, tag, comm, count, peer == MPI_ANY_SOURCE, tag == MPI_ANY_TAG);
}

/// Raises the error of an invalid route.
int raise_route(const Route& route, const char* call);

}  // namespace mpisec::shim
