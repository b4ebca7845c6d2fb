#include "wire/predecessors.hpp"

namespace mpisec::wire {

bool LastCounters::look_up(std::uint64_t stream, std::uint64_t counter) {
    auto entry = last_.find(stream);
    const bool is_new = entry == last_.end();
    if (is_new) {
        if (last_.size() == most_streams) last_.clear();
        entry = last_.emplace(stream, counter).first;
    }
    latest_stream_ = stream;
    latest_ = &entry->second;
    return is_new;
}

void LastCounters::forget(std::uint64_t stream, std::uint64_t counter) {
    const auto entry = last_.find(stream);
    if (entry == last_.end() || entry->second != counter) return;
    last_.erase(entry);
    latest_ = nullptr;
}

}  // namespace mpisec::wire
