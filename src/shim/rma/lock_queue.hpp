// The lock of one process's part of a window (MPI standard section 12.5.3). That process keeps it; other ranks ask for it
// with messages. A rank that asks for a shared lock gets it at once unless a rank holds the lock exclusively: shared locks
// must never wait for each other. Otherwise two ranks that lock all ranks (MPI_Win_lock_all) could block for ever, each
// holding a lock for which an exclusive request waits, with the other rank queued behind that request. In all other cases
// the lock is granted in the order of asking.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

namespace mpisec::shim::rma {

enum class Held : std::uint8_t { no, shared, exclusive };

class LockQueue {
  public:
    /// `origin` asks for the lock. Returns the ranks to which it is granted now.
    std::vector<int> ask(int origin, Held kind) {
        waiting_.push_back({origin, kind});
        return grant();
    }
    /// A holder gives the lock back. False when nobody holds it in this way.
    bool give_back(Held kind, std::vector<int>& granted) {
        if (kind == Held::exclusive ? !exclusive_ : sharers_ == 0) return false;
        if (kind == Held::exclusive)
            exclusive_ = false;
        else
            --sharers_;
        granted = grant();
        return true;
    }

  private:
    struct Waiting {
        int origin;
        Held kind;
    };
    std::vector<int> grant() {
        std::vector<int> granted;
        if (exclusive_ || waiting_.empty()) return granted;
        if (sharers_ == 0 && waiting_.front().kind == Held::exclusive) {
            exclusive_ = true;
            granted.push_back(waiting_.front().origin);
            waiting_.pop_front();
            return granted;
        }
        std::erase_if(waiting_, [&](const Waiting& each) {
            if (each.kind == Held::shared) granted.push_back(each.origin);
            return each.kind == Held::shared;
        });
        sharers_ += granted.size();
        return granted;
    }

    std::deque<Waiting> waiting_;
    std::uint64_t sharers_ = 0;
    bool exclusive_ = false;
};

}  // namespace mpisec::shim::rma
