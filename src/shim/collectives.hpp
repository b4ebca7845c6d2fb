// What the sealed collectives share: messages on a communicator's private twin, failures that reach the other
// ranks, and the way down to the MPI library for communicators that stay inside a node.
#pragma once

#include <mpi.h>

#include <climits>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "shim/communicator.hpp"
#include "shim/entry.hpp"
#include "shim/operation.hpp"
#include "shim/real.hpp"

namespace mpisec::shim::collective {

/// Tags on the twin. Sealing binds the tag, so a message of one collective can not stand in for one of
/// another (S2).
enum Tag : int {
    failure_tag = 0,
    barrier_tag,
    bcast_tag,
    reduce_tag,
    gather_tag,
    scatter_tag,
    allgather_tag,
    alltoall_tag
};

/// One collective call on one rank, over sealed point-to-point messages.
///
/// The first error sticks. A rank with an error goes on through all its steps, but what it would have sent it
/// replaces by an empty message with failure_tag, and whoever receives that has an error too: nobody waits
/// for a rank that gave up (S8).
class Exchange {
  public:
    static constexpr int no_root = 0;

    /// Checks that the communicator is one that MPIsec can seal and that `root` is a rank of it.
    Exchange(const char* procedure, MPI_Comm comm, Tag tag, int root = no_root);

    /// No message can be exchanged; finish() gives the error.
    bool impossible() const { return impossible_; }
    int rank() const { return comm_->rank; }
    int size() const { return comm_->size; }

    void send(const void* buf, MPI_Count count, MPI_Datatype type, int to);
    void receive(void* buf, MPI_Count count, MPI_Datatype type, int from);
    void send_receive(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int to, void* recvbuf,
                      MPI_Count recvcount, MPI_Datatype recvtype, int from);
    /// In place: the block is sent and then overwritten by the other rank's.
    void send_receive_replace(void* buf, MPI_Count count, MPI_Datatype type, int with);

    void set_tag(Tag tag) { tag_ = tag; }
    bool failed() const { return error_ != MPI_SUCCESS; }
    /// Keeps the first error; MPI_SUCCESS is none.
    void note(int code);
    /// Calls the communicator's error handler if there was an error; the call's result.
    int finish();

  private:
    int outgoing_tag() const { return failed() ? static_cast<int>(failure_tag) : static_cast<int>(tag_); }
    void check_arrival(int code, const MPI_Status& status, int from);

    const char* procedure_;
    Communicator* comm_;
    MPI_Comm twin_{};
    Tag tag_;
    int error_ = MPI_SUCCESS;
    bool raised_ = false;
    bool impossible_ = false;
};

/// `offset` bytes after buf; also for MPI_BOTTOM, where pointer arithmetic would start at null.
inline void* at(void* buf, MPI_Aint offset) {
    return reinterpret_cast<void*>(reinterpret_cast<std::intptr_t>(buf) + offset);
}
inline const void* at(const void* buf, MPI_Aint offset) {
    return reinterpret_cast<const void*>(reinterpret_cast<std::intptr_t>(buf) + offset);
}

/// The buffer of a v-collective or of its regular twin: where each rank's block starts and how many elements
/// it has.
struct Blocks {
    void* base;
    MPI_Datatype type;
    MPI_Aint extent;                        ///< bytes
    Counts counts = nullptr;                ///< by rank; empty: `each` for every rank, one after the other
    Displacements displacements = nullptr;  ///< in extents
    MPI_Count each = 0;

    Blocks(const void* buf, MPI_Count each, MPI_Datatype type);
    Blocks(const void* buf, Counts counts, Displacements displacements, MPI_Datatype type);
    MPI_Count count(int rank) const { return counts ? counts[rank] : each; }
    void* start(int rank) const { return at(base, extent * (counts ? displacements[rank] : rank * each)); }
};

/// Elements from one buffer to another of this process, whose types have the same signature. Returns an MPI
/// error code.
int copy(const void* from, MPI_Count fromcount, MPI_Datatype fromtype, void* to, MPI_Count tocount,
         MPI_Datatype totype);

/// Root's buffer to everybody's, along a binomial tree.
void broadcast(Exchange& exchange, void* buffer, MPI_Count count, MPI_Datatype type, int root);

inline bool fits(MPI_Count count) {
    return count <= INT_MAX;
}

/// The user's call, unchanged, to the MPI library, once all members are there: then it does not wait for any
/// that still needs this rank to move its large messages (M5).
template <class Call, class... Arguments>
int move_down(MPI_Comm comm, Call call, Arguments... arguments) {
    const int code = meet_members(comm);
    return code == MPI_SUCCESS ? call(arguments...) : code;
}

}  // namespace mpisec::shim::collective

/// move_down for counts above INT_MAX, where the family's mpi.h has the _c variants; elsewhere such counts
/// can not be asked for (M12).
#if MPI_VERSION >= 4
#define MPISEC_MOVE_DOWN_LARGE(comm, call, ...) \
    ::mpisec::shim::collective::move_down(comm, ::mpisec::shim::real.call##_c, __VA_ARGS__)
#else
#define MPISEC_MOVE_DOWN_LARGE(comm, call, ...) MPI_ERR_COUNT
#endif
