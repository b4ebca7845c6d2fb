// Whether the other ranks of this node still run. What a rank of another node does is known only from its messages, so a dead one cannot be
// told from a slow one; a process on this node is known to the kernel.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace mpisec::shim {

/// Tells a process from a later one with the same number.
struct NodePeer {
    std::int32_t rank = -1;  ///< in MPI_COMM_WORLD
    pid_t process = 0;
    std::uint64_t started = 0;  ///< in ticks since the kernel started; 0: not known
    /// The PID namespace of the number, and the time namespace of the start; 0: not known.
    std::uint64_t numbering = 0, clock = 0;
    bool operator==(const NodePeer&) const = default;
};

NodePeer this_process(std::int32_t rank);

/// Any thread may call it.
class NodePeers {
  public:
    /// Watches these, from the proof that they share memory on.
    void know(std::vector<NodePeer> all, std::int32_t own_rank);

    /// From MPI_Finalize on, where peers end of their own accord, none is watched any more.
    void forget();

    /// The world rank of a peer whose process has certainly ended; -1 when there is none, or when the system does not say. Makes a few
    /// system calls for each peer.
    std::int32_t dead();

  private:
    std::mutex mutex_;
    std::vector<NodePeer> peers_;
    NodePeer own_;
};

}  // namespace mpisec::shim
