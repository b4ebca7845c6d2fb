#include "wire/content_order.hpp"

#include <algorithm>

namespace mpisec::wire {

void ContentOrder::withdrawn(std::uint32_t number) {
    std::erase_if(sent_, [&](const Sent& message) { return message.number == number; });
}

bool ContentOrder::received(std::uint64_t position, const ReceivedContent& received, std::uint64_t oldest) {
    auto [place, is_new] = received_.emplace(position, received);
    if (!is_new) return false;
    if (!possible()) {
        received_.erase(place);
        return false;
    }
    return settle(oldest);
}

/// Each receive takes the first message that it may have got, after the one that the receive before it took: if there is any way at all,
/// this is one, because it leaves the most messages to the receives that follow.
bool ContentOrder::possible() const {
    auto message = sent_.begin();
    for (const auto& [position, received] : received_) {
        while (message != sent_.end() && !received.matches(message->content)) ++message;
        if (message == sent_.end()) return false;
        ++message;
    }
    return true;
}

/// Receives before `oldest` have no unfinished receive before them: they got the first messages, one by one.
bool ContentOrder::settle(std::uint64_t oldest) {
    bool good = true;
    while (!received_.empty() && received_.begin()->first < oldest) {
        const bool first = !sent_.empty() && received_.begin()->second.matches(sent_.front().content);
        received_.erase(received_.begin());
        if (first)
            sent_.pop_front();
        else
            good = false;
    }
    return good;
}

}  // namespace mpisec::wire
