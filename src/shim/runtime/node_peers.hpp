// Whether the other ranks of this node still run. What a rank of another node does is known from its messages
// only, and a dead one cannot be told from a slow one there; of a process on this node the kernel knows.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace mpisec::shim {

/// By what a process is told from a later one with the same number.
struct NodePeer {
    std::int32_t rank = -1;  ///< in MPI_COMM_WORLD
    pid_t process = 0;
    std::uint64_t started = 0;  ///< in ticks since the kernel started; 0: not known
    /// The PID namespace that the number is of, and the time namespace of the start; 0: not known.
    std::uint64_t numbering = 0, clock = 0;
    bool operator==(const NodePeer&) const = default;
};

NodePeer this_process(std::int32_t rank);

/// Any thread may call.
class NodePeers {
  public:
    /// From the proof that they share memory on.
    void know(std::vector<NodePeer> all, std::int32_t own_rank);

    /// From MPI_Finalize on, where peers end of their own accord, none is watched.
    void forget();

    /// The world rank of a peer whose process has certainly ended; -1 when there is none, or when the system
    /// does not say. A few system calls for each peer.
    std::int32_t dead();

  private:
    std::mutex mutex_;
    std::vector<NodePeer> peers_;
    NodePeer own_;
};

}  // namespace mpisec::shim
