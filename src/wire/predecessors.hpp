// What a message says about those before it with the same communicator (S2; MPI 5.0 section 3.5): when one was held back on the way, the
// next one must not take its place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <unordered_map>
#include <utility>

#include "wire/frame.hpp"
#include "wire/order.hpp"

namespace mpisec::wire {

/// The counter of the last message of each stream.
class LastCounters {
  public:
    LastCounters() = default;
    LastCounters(const LastCounters&) = delete;  // `latest_` points into it
    LastCounters& operator=(const LastCounters&) = delete;

    /// The distance from `counter` back to the counter of the stream's last message; from here on `counter` is that of the last one.
    /// 0: there was none, or it was forgotten.
    std::uint64_t back_from(std::uint64_t stream, std::uint64_t counter) {
        if (!latest_ || stream != latest_stream_) [[unlikely]]
            look_up(stream);
        const std::uint64_t before = std::exchange(latest_->last, counter);
        latest_->before = before;
        return before == none ? 0 : counter - before;
    }

    /// The message with `counter` must not be named; the one before it is named instead.
    void forget(std::uint64_t stream, std::uint64_t counter);

    std::size_t streams() const { return recent_.size() + older_.size(); }

    /// At most this many streams are remembered; of these, the half that was used last stays.
    static constexpr std::size_t most_streams = 1 << 14;

  private:
    static constexpr std::uint64_t none = ~std::uint64_t{0};  // no counter is this high
    struct Counters {
        std::uint64_t last = none, before = none;
    };

    /// Makes the stream the latest one.
    void look_up(std::uint64_t stream);

    std::unordered_map<std::uint64_t, Counters> recent_, older_;  // by stream
    std::uint64_t latest_stream_ = 0;                             // of the message before
    Counters* latest_ = nullptr;                                  // its entry, in recent_
};

/// A sender's, one per communicator.
class Predecessors {
  public:
    /// What the message with `counter` says, which from here on is the last one to `peer` with `tag`. 0 where there was none before, where
    /// it was forgotten, or where it is further back than the field of the nonce can say.
    WayBack back_from(std::int32_t peer, std::int32_t tag, std::uint64_t counter) {
        return {fitting<std::uint16_t>(same_tag_.back_from(stream_of(peer, tag), counter)),
                fitting<std::uint8_t>(any_tag_.back_from(static_cast<std::uint32_t>(peer), counter))};
    }

    /// The message with `counter` will not arrive (MPI refused it, or it was cancelled): later messages name the one before it.
    void forget(std::int32_t peer, std::int32_t tag, std::uint64_t counter) {
        same_tag_.forget(stream_of(peer, tag), counter);
        any_tag_.forget(static_cast<std::uint32_t>(peer), counter);
    }

    std::size_t streams() const { return same_tag_.streams(); }

  private:
    template <class Field>
    static Field fitting(std::uint64_t back) {
        return back <= std::numeric_limits<Field>::max() ? static_cast<Field>(back) : Field{0};
    }

    LastCounters same_tag_, any_tag_;
};

}  // namespace mpisec::wire
