#include "wire/replay.hpp"

#include <iterator>

namespace mpisec::wire {

/// The run that starts at or before `counter`; end() when there is none.
ReplaySet::Runs::const_iterator ReplaySet::run_from(std::uint64_t counter) const {
    auto after = runs_.upper_bound(counter);
    return after == runs_.begin() ? runs_.end() : std::prev(after);
}

bool ReplaySet::contains(std::uint64_t counter) const {
    if (counter < base_) return true;
    auto run = run_from(counter);
    return run != runs_.end() && counter <= run->second;
}

bool ReplaySet::insert_out_of_order(std::uint64_t counter) {
    if (contains(counter)) return false;
    auto next = runs_.upper_bound(counter);
    const bool joins_next = next != runs_.end() && next->first - 1 == counter;
    const std::uint64_t last = joins_next ? next->second : counter;
    if (joins_next) next = runs_.erase(next);

    if (counter == base_) {
        base_ = last + 1;
        return true;
    }
    if (next != runs_.begin() && std::prev(next)->second + 1 == counter)
        std::prev(next)->second = last;
    else
        runs_.emplace_hint(next, counter, last);
    return true;
}

}  // namespace mpisec::wire
