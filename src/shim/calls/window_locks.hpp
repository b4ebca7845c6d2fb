// The locks of one window (MPI standard section 12.5.3), as words in memory that its ranks share. MPIsec takes these before the MPI library
// takes its own, which are then free: MPI_Win_lock has no form that does not block, and the rank that holds the lock may need a message of
// the waiting rank before it can give the lock back (M5).
//
// A new shared lock waits for ranks that want the word exclusively, so that they get their turn, but not for ever: a rank that already
// holds the lock may be waiting for the rank that wants to share it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace mpisec::shim {

class WindowLocks {
  public:
    /// `memory`: bytes_for(ranks) bytes, zeroed when the window was made, aligned to 64 bytes.
    explicit WindowLocks(std::span<std::uint8_t> memory) : words_(reinterpret_cast<Word*>(memory.data())) {}
    static constexpr std::size_t bytes_for(std::size_t ranks) { return ranks * sizeof(Word); }

    /// For this many looks, a shared lock lets ranks that want an exclusive one go first.
    static constexpr unsigned most_looks = 4096;

    bool try_exclusive(std::size_t rank) {
        std::int32_t free = 0;
        return words_[rank].holders.compare_exchange_strong(free, exclusive, std::memory_order_acquire);
    }
    bool try_shared(std::size_t rank, unsigned looks) {
        Word& word = words_[rank];
        if (looks < most_looks && word.wanted.load(std::memory_order_relaxed) > 0) return false;
        std::int32_t holders = word.holders.load(std::memory_order_relaxed);
        while (holders != exclusive)
            if (word.holders.compare_exchange_weak(holders, holders + 1, std::memory_order_acquire))
                return true;
        return false;
    }
    void give_back_exclusive(std::size_t rank) { words_[rank].holders.store(0, std::memory_order_release); }
    void give_back_shared(std::size_t rank) { words_[rank].holders.fetch_sub(1, std::memory_order_release); }

    /// This rank wants an exclusive lock for as long as this object lives.
    class Want {
      public:
        Want(WindowLocks& locks, std::size_t rank) : wanted_(locks.words_[rank].wanted) {
            wanted_.fetch_add(1, std::memory_order_relaxed);
        }
        ~Want() { wanted_.fetch_sub(1, std::memory_order_relaxed); }
        Want(const Want&) = delete;
        Want& operator=(const Want&) = delete;

      private:
        std::atomic<std::int32_t>& wanted_;
    };

  private:
    static constexpr std::int32_t exclusive = -1;
    struct Word {
        alignas(64) std::atomic<std::int32_t> holders;  ///< how many share the lock, or `exclusive`
        std::atomic<std::int32_t> wanted;               ///< how many wait for it to be free
    };
    static_assert(std::atomic<std::int32_t>::is_always_lock_free);
    Word* words_;
};

}  // namespace mpisec::shim
