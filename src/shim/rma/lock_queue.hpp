// The lock of one process's part of a window (MPI standard section 12.5.3): kept by that process, asked for
// with messages. Whoever asks for it shared has it at once unless one has it exclusively: shared locks never wait
// for each other, or two ranks that take every rank's (MPI_Win_lock_all) would each hold what makes an exclusive
// lock wait before which the other must queue. Else it is granted in the order of asking.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

namespace mpisec::shim::rma {

enum class Held : std::uint8_t { no, shared, exclusive };

class LockQueue {
  public:
    /// `origin` asks for it. Returns whom it is granted to now.
    std::vector<int> ask(int origin, Held kind) {
        waiting_.push_back({origin, kind});
        return grant();
    }
    /// One that had it gives it back. False when nobody has it in this way.
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
