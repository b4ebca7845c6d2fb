// The lock of one process's part of a window (MPI standard section 12.5.3): kept by that process, asked for
// with messages, granted in the order of asking.
#pragma once

#include <algorithm>
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
        while (!waiting_.empty() && !exclusive_) {
            const Waiting first = waiting_.front();
            if (first.kind == Held::exclusive && sharers_ > 0) break;
            (first.kind == Held::exclusive ? static_cast<void>(exclusive_ = true)
                                           : static_cast<void>(++sharers_));
            granted.push_back(first.origin);
            waiting_.pop_front();
        }
        return granted;
    }

    std::deque<Waiting> waiting_;
    std::uint64_t sharers_ = 0;
    bool exclusive_ = false;
};

}  // namespace mpisec::shim::rma
