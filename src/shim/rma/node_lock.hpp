// A lock in memory that ranks of a node share. Each rank's part of a window that MPI_Win_allocate made has one, so that
// accumulates by ranks of its node and those that the part's own rank does for other ranks exclude each other.
#pragma once

#include <pthread.h>

#include <cstddef>

namespace mpisec::shim::rma {

class NodeLock {
  public:
    static constexpr std::size_t bytes = 64;  ///< of memory: a cache line of its own

    /// Makes one in `memory`, which no other rank uses before it has been told of it.
    static NodeLock* make(void* memory);
    /// The one that was made there.
    static NodeLock* at(void* memory) { return static_cast<NodeLock*>(memory); }

    /// What std::scoped_lock needs. A lock whose holder has died counts as released: the job ends anyway, and this rank
    /// must not wait for ever.
    void lock();
    void unlock() { pthread_mutex_unlock(&mutex_); }

  private:
    NodeLock() = default;
    pthread_mutex_t mutex_;
};
static_assert(sizeof(NodeLock) <= NodeLock::bytes);

}  // namespace mpisec::shim::rma
