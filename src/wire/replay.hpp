// Exact replay detection (S3): the set of counters accepted from one sender, as runs.
//
// Counters arrive in order except for messages that MPI matches out of order, so the set is one long run and as many short ones as there
// are gaps. There are at most as many gaps as messages that are still unreceived. The set never forgets, unlike a window (RFC 4303 appendix
// A2), so an attacker cannot outrun it by delaying a message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace mpisec::wire {

class ReplaySet {
  public:
    /// True when `counter` has been accepted before.
    bool contains(std::uint64_t counter) const;
    /// Accepts `counter`; false, and no change, when it was accepted before.
    bool insert(std::uint64_t counter) {
        if (counter == base_ && runs_.empty()) {  // in order: the usual case
            ++base_;
            return true;
        }
        return insert_out_of_order(counter);
    }
    /// Every counter below has been accepted, and this one has not.
    std::uint64_t base() const { return base_; }
    /// Runs above base: as many as there are gaps between accepted counters.
    std::size_t runs() const { return runs_.size(); }

  private:
    /// First -> last, both accepted; never overlapping or touching.
    using Runs = std::map<std::uint64_t, std::uint64_t>;

    bool insert_out_of_order(std::uint64_t counter);
    Runs::const_iterator run_from(std::uint64_t counter) const;

    std::uint64_t base_ = 0;
    Runs runs_;  // all above base_
};

}  // namespace mpisec::wire
