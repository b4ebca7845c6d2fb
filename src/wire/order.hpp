// MPI's non-overtaking rule, checked (S2; MPI 5.0 section 3.5): of two messages of
// one (communicator, source, tag) the one matched to the earlier receive has the lower counter.
#pragma once

#include <cstdint>
#include <map>

namespace mpisec::wire {

/// Names, among a communicator's messages, those that MPI keeps in order: the ones of one peer with one tag.
constexpr std::uint64_t stream_of(std::int32_t peer, std::int32_t tag) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(peer)) << 32 |
           static_cast<std::uint32_t>(tag);
}

/// One per (communicator, source, tag). A receive has a position: the order in which it was posted. Each
/// position gets one message and each counter is accepted once (ReplaySet), before it comes here.
///
/// Usage: record(), then prune(). When messages are in order, that is when every counter below the new one has been accepted and no earlier
/// receive waits, nothing stays behind, so a caller that sees this with an empty tracker need not make one at all.
class OrderTracker {
  public:
    /// Records that the receive at `position` got `counter`. False, and no change, when that contradicts an
    /// earlier record: an earlier position with a higher counter, a later position with a lower one, or the
    /// same position.
    bool record(std::uint64_t position, std::uint64_t counter);

    /// Drops the records that a later record cannot contradict without also contradicting one that stays. From here on every position that
    /// is recorded is `oldest_outstanding` or later (all receives posted before it are finished) and every counter that is recorded is
    /// `replay_base` or above (all below have been accepted). What is left is at most one record more than there are messages that were
    /// matched after `oldest_outstanding` and also have a counter above `replay_base`.
    void prune(std::uint64_t oldest_outstanding, std::uint64_t replay_base);

    bool empty() const { return counters_.empty(); }
    std::size_t size() const { return counters_.size(); }

  private:
    std::map<std::uint64_t, std::uint64_t> counters_;  // position -> counter, both increasing
};

}  // namespace mpisec::wire
