// MPI's non-overtaking rule, checked (S2, "Order" in design.md 3): of two messages of one (communicator, source, tag)
// the one matched to the earlier receive has the lower counter.
#pragma once

#include <cstdint>
#include <map>

namespace mpisec::wire {

/// One per (communicator, source, tag). A receive has a position: the order in which it was posted.
class OrderTracker {
  public:
    /// Records that the receive at `position` got `counter`. False, and no change, when that contradicts an earlier record:
    /// an earlier position with a higher counter or a later position with a lower one.
    bool record(std::uint64_t position, std::uint64_t counter);
    /// Drops what can no longer be contradicted: no receive posted before `oldest_outstanding` is unfinished, and
    /// every counter below `replay_base` has been accepted. Keeps the newest record that still matters.
    void prune(std::uint64_t oldest_outstanding, std::uint64_t replay_base);
    bool empty() const { return counters_.empty(); }

  private:
    std::map<std::uint64_t, std::uint64_t> counters_;  // position -> counter, both increasing
};

}  // namespace mpisec::wire
