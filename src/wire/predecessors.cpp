#include "wire/predecessors.hpp"

namespace mpisec::wire {

void LastCounters::look_up(std::uint64_t stream) {
    auto entry = recent_.find(stream);
    if (entry == recent_.end()) {
        const auto old = older_.find(stream);
        const Counters known = old == older_.end() ? Counters{} : old->second;
        if (old != older_.end()) older_.erase(old);
        if (recent_.size() == most_streams / 2) {
            older_ = std::move(recent_);
            recent_.clear();
        }
        entry = recent_.emplace(stream, known).first;
    }
    latest_stream_ = stream;
    latest_ = &entry->second;
}

void LastCounters::forget(std::uint64_t stream, std::uint64_t counter) {
    for (auto* counters : {&recent_, &older_})
        if (const auto entry = counters->find(stream);
            entry != counters->end() && entry->second.last == counter)
            entry->second = {entry->second.before, none};
}

}  // namespace mpisec::wire
