// Reports who waits for whom when nothing has moved for MPISEC_STALL_TIME (S8). A message that never arrives cannot be told from a slow
// link, so this only reports. It ends the job only with MPISEC_STALL_ACTION=abort; or when a call waits long while another rank of this
// node has certainly died, unless MPISEC_STALL_ACTION=report.
#pragma once

#include <atomic>
#include <cstdint>

namespace mpisec::shim {

/// What one thread of the program waits for. Written by that thread, read by the watchdog.
struct WaitSlot {
    std::atomic<const char*> call{nullptr};
    std::atomic<int> peer{0};
    std::atomic<int> tag{0};
    /// Grows with every wait, so that a new one is not taken for the old one.
    std::atomic<std::uint64_t> sequence{0};
};
extern constinit thread_local WaitSlot* wait_slot;  ///< this thread's, once it has waited
WaitSlot& make_wait_slot();

/// Marks a wait for as long as it lives. Costs a few stores: no clock is read.
class WaitScope {
  public:
    WaitScope(const char* call, int peer, int tag)
        : slot_(wait_slot ? *wait_slot : make_wait_slot()),
          outer_(slot_.call.load(std::memory_order_relaxed)) {
        if (outer_) return;
        slot_.peer.store(peer, std::memory_order_relaxed);
        slot_.tag.store(tag, std::memory_order_relaxed);
        slot_.sequence.store(slot_.sequence.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        slot_.call.store(call, std::memory_order_release);
    }
    ~WaitScope() {
        if (!outer_) slot_.call.store(nullptr, std::memory_order_release);
    }
    WaitScope(const WaitScope&) = delete;
    WaitScope& operator=(const WaitScope&) = delete;

  private:
    WaitSlot& slot_;
    const char* outer_;
};

void start_watchdog();  ///< a thread that sleeps; none when MPISEC_STALL_TIME is 0
void stop_watchdog();   ///< joins it (M14)

}  // namespace mpisec::shim
