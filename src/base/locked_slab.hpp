// Memory for key material (S5): slots of one size in pages that are locked, left out of core dumps and wiped
// in children.
#pragma once

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

namespace mpisec {

/// Makes a child find these pages zeroed, or, where the system cannot do that, not find them at all. False where it can do neither.
inline bool hide_from_children(void* pages, std::size_t bytes) {
    return madvise(pages, bytes, MADV_WIPEONFORK) == 0 || madvise(pages, bytes, MADV_DONTFORK) == 0;
}

/// Thread-safe. Pages are kept for reuse until the process ends; every free slot is all zero.
class LockedSlab {
  public:
    enum class Fork { wipe, keep };  ///< what a child finds after fork()

    /// `slot_bytes` is rounded up to a cache line, to which slots are aligned.
    explicit LockedSlab(std::size_t slot_bytes, Fork fork = Fork::wipe)
        : slot_bytes_((slot_bytes + 63) / 64 * 64), fork_(fork) {
        if (fork == Fork::keep) stay_whole();
    }

    /// A zeroed slot; null when the system has no memory.
    void* take() {
        std::lock_guard lock(mutex_);
        if (free_.empty() && !grow()) return nullptr;
        void* slot = free_.back();
        free_.pop_back();
        return slot;
    }

    /// Slots for later, which take no memory until they are used: for a sandbox that later ends a process for locking memory.
    void reserve(std::size_t bytes) {
        std::lock_guard lock(mutex_);
        add(bytes / slot_bytes_, MLOCK_ONFAULT);
    }

    void give_back(void* slot) {
        explicit_bzero(slot, slot_bytes_);
        std::lock_guard lock(mutex_);
        free_.push_back(slot);  // never allocates: grow() made room for every slot
    }

  private:
    /// No thread is in a slab that a child keeps while another one forks: the child would find it locked for ever. Such a slab is never
    /// destroyed.
    void stay_whole() {
        std::lock_guard lock(kept_lock_);
        if (!kept_) pthread_atfork(lock_kept, unlock_kept, unlock_kept);
        next_ = std::exchange(kept_, this);
    }
    static void lock_kept() {
        kept_lock_.lock();
        for (LockedSlab* one = kept_; one; one = one->next_) one->mutex_.lock();
    }
    static void unlock_kept() {
        for (LockedSlab* one = kept_; one; one = one->next_) one->mutex_.unlock();
        kept_lock_.unlock();
    }

    /// Adds as many slots as there are already, from 8 KiB to 64 KiB: locked pages are in memory before they are used.
    bool grow() {
        const std::size_t wanted = std::clamp<std::size_t>(total_ * slot_bytes_, 8192, 65536);
        return add(std::max<std::size_t>(1, wanted / slot_bytes_), 0);
    }

    bool add(std::size_t slots, unsigned locking) {
        const std::size_t bytes = slots * slot_bytes_;
        void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (pages == MAP_FAILED) return false;
        if (fork_ == Fork::wipe && !hide_from_children(pages, bytes)) {
            munmap(pages, bytes);
            return false;
        }
        // Can run into RLIMIT_MEMLOCK: swap belongs to the node, which the attacker does not own.
        mlock2(pages, bytes, locking);
        madvise(pages, bytes, MADV_DONTDUMP);
        total_ += slots;
        free_.reserve(total_);
        for (std::size_t i = slots; i-- > 0;) free_.push_back(static_cast<char*>(pages) + i * slot_bytes_);
        return true;
    }

    std::mutex mutex_;
    std::vector<void*> free_;
    std::size_t slot_bytes_, total_ = 0;
    Fork fork_;
    LockedSlab* next_ = nullptr;
    inline static std::mutex kept_lock_;
    inline static LockedSlab* kept_ = nullptr;
};

}  // namespace mpisec
