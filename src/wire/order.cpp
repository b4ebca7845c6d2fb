#include "wire/order.hpp"

#include <iterator>

namespace mpisec::wire {

bool OrderTracker::record(std::uint64_t position, std::uint64_t counter) {
    // Both columns increase, so only the neighbours can be contradicted.
    auto next = counters_.lower_bound(position);
    if (next != counters_.end() && (next->first == position || next->second <= counter)) return false;
    if (next != counters_.begin() && std::prev(next)->second >= counter) return false;
    counters_.emplace_hint(next, position, counter);
    return true;
}

// A record (p, c) is contradicted by a later one (p', c') in one of two ways:
//
//   A  p' < p and c' > c    possible while a receive before p is unfinished: oldest_outstanding < p
//   B  p' > p and c' < c    possible while a counter below c is missing:     replay_base < c
//
// `settled` records have both p < oldest_outstanding and c < replay_base: neither way is possible any more.
// For all records with p < oldest_outstanding only B is possible, and the newest of them, which has the highest c, reveals it for all.
// For all records with c < replay_base only A is possible, and the newest of them, which has the highest p and still c < c', reveals it
// for all. So the last record of the longer of these two prefixes stands for those before it.
void OrderTracker::prune(std::uint64_t oldest_outstanding, std::uint64_t replay_base) {
    auto first_kept = counters_.begin();
    while (first_kept != counters_.end()) {
        const bool settled = first_kept->first < oldest_outstanding && first_kept->second < replay_base;
        auto next = std::next(first_kept);
        const bool next_stands_for_it =
            next != counters_.end() && (next->first < oldest_outstanding || next->second < replay_base);
        if (!settled && !next_stands_for_it) break;
        first_kept = next;
    }
    counters_.erase(counters_.begin(), first_kept);
}

}  // namespace mpisec::wire
