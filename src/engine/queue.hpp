// The waiting tasks, oldest first: one thread puts them in, any thread takes some out, and none of them locks.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace mpisec::engine {

struct SegmentTask;

class TaskQueue {
  public:
    /// False when the queue is full. To be called by one thread at a time.
    bool push(SegmentTask* task, std::size_t bytes) {
        const std::uint64_t at = end_.load(std::memory_order_relaxed);
        if (at - begin_.load(std::memory_order_acquire) == slots_.size()) return false;
        Slot& slot = slots_[at % slots_.size()];
        slot.task.store(task, std::memory_order_relaxed);
        slot.bytes.store(bytes, std::memory_order_relaxed);
        // Whoever sees the end sees the task; sequentially consistent: see Engine::submit.
        end_.store(at + 1);
        return true;
    }

    /// Takes several of the oldest tasks at once, at most `most` and no more than `bytes` together (but at least one), so that small ones
    /// are not fetched one by one. Returns how many. Any thread.
    std::size_t take(SegmentTask** to, std::size_t most, std::size_t bytes) {
        std::uint64_t from = begin_.load(std::memory_order_acquire);
        for (;;) {
            const std::uint64_t end = end_.load();
            if (from >= end) return 0;
            std::size_t count = 0;
            for (std::size_t sum = 0; count < most && from + count < end; ++count) {
                // What is read here can have been overwritten only if `begin_` has moved, and then it is not used.
                const Slot& slot = slots_[(from + count) % slots_.size()];
                sum += slot.bytes.load(std::memory_order_relaxed);
                if (count > 0 && sum > bytes) break;
                to[count] = slot.task.load(std::memory_order_relaxed);
            }
            if (begin_.compare_exchange_weak(from, from + count, std::memory_order_acq_rel,
                                             std::memory_order_acquire))
                return count;
        }
    }

    /// The number of tasks a moment ago.
    std::size_t size() const {
        const std::uint64_t from = begin_.load(), end = end_.load();
        return end > from ? static_cast<std::size_t>(end - from) : 0;
    }

  private:
    struct Slot {
        std::atomic<SegmentTask*> task{nullptr};
        std::atomic<std::size_t> bytes{0};
    };
    // On separate lines, because the threads that take and the one that puts in each write to one of them.
    alignas(64) std::atomic<std::uint64_t> begin_{0};
    alignas(64) std::atomic<std::uint64_t> end_{0};
    alignas(64) std::array<Slot, 512> slots_;
};

}  // namespace mpisec::engine
