// Programs that call MPI from more threads than they asked for (S4).
//
// Keys, counters and pooled buffers are MPIsec's state, locked by the Guard only where the program was granted MPI_THREAD_MULTIPLE. A
// program that was granted less but calls from two threads at the same time breaks MPI's rules; it must not make MPIsec use a key and a
// nonce twice. So a thread that takes a counter and seals with it must be alone while it does: when a second thread arrives in that time,
// the job ends before the second thread has sealed anything.
//
// This costs the thread that called MPI_Init three moves and no atomic exchange: the lock is biased towards it. The first other thread that
// seals takes that bias away, for good (MEMBARRIER_CMD_GLOBAL replaces the fence that the first thread leaves out); from then on each
// thread takes a lock, which it finds free unless two call at the same time. So threads that take turns, as MPI_THREAD_SERIALIZED allows,
// are not stopped.
#pragma once

#include <atomic>

#include "shim/runtime/state.hpp"

namespace mpisec::shim {

inline constexpr SealingLock& sealing_lock = process.sealing_lock;
extern constinit thread_local char thread_mark;  ///< its address tells threads apart

/// Called in the thread that calls MPI_Init; `level` is what MPI granted.
void start_sealing_lock(int level);

/// Encloses taking a counter and sealing with it. Not nested, and not around a call of MPI that may run code of the program (error
/// handlers, reductions), which may send. `call`: what the program has called.
class SealingScope {
  public:
    explicit SealingScope(const char* call) {
        if (state.thread_multiple) return;  // under the Guard
        if (sealing_lock.owner == &thread_mark) [[likely]] {
            sealing_lock.owner_inside.store(true, std::memory_order_relaxed);
            std::atomic_signal_fence(std::memory_order_seq_cst);
            if (!sealing_lock.bias_revoked.load(std::memory_order_relaxed)) [[likely]] {
                biased_ = true;
                return;
            }
            sealing_lock.owner_inside.store(false, std::memory_order_release);
        }
        lock(call);
    }
    ~SealingScope() {
        if (biased_) [[likely]]
            sealing_lock.owner_inside.store(false, std::memory_order_release);
        else if (!state.thread_multiple)
            sealing_lock.locked.store(false, std::memory_order_release);
    }
    SealingScope(const SealingScope&) = delete;
    SealingScope& operator=(const SealingScope&) = delete;

  private:
    static void lock(const char* call);
    bool biased_ = false;
};

}  // namespace mpisec::shim
