// What a message says of the one before it with the same communicator and tag (S2; MPI 5.0 section 3.5): a message that was held
// back on the way must not have its place taken by the next one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <unordered_map>

namespace mpisec::wire {

/// A sender's, one per communicator. A stream is what MPI keeps in order: the messages to one rank with one tag.
class Predecessors {
  public:
    Predecessors() = default;
    Predecessors(const Predecessors&) = delete;  // `latest_` points into it
    Predecessors& operator=(const Predecessors&) = delete;

    /// How many counters before `counter` that of the stream's last message was, which `counter` is from here on. 0: there was
    /// none, it was forgotten, or it is further back than the field of the nonce can say.
    std::uint16_t back_from(std::uint64_t stream, std::uint64_t counter) {
        if (!latest_ || stream != latest_stream_) [[unlikely]]
            if (look_up(stream, counter)) return 0;
        const std::uint64_t back = counter - *latest_;
        *latest_ = counter;
        return back <= std::numeric_limits<std::uint16_t>::max() ? static_cast<std::uint16_t>(back) : 0;
    }

    /// The message with `counter` will not arrive (MPI refused it, or it was cancelled): the next one must not name it.
    void forget(std::uint64_t stream, std::uint64_t counter);

    std::size_t streams() const { return last_.size(); }

    /// Of so many streams the last messages are kept, then all are forgotten: for programs that never use a tag twice.
    static constexpr std::size_t most_streams = 1 << 14;

  private:
    /// Makes it the latest; true when it is new, with this counter.
    bool look_up(std::uint64_t stream, std::uint64_t counter);

    std::unordered_map<std::uint64_t, std::uint64_t> last_;  // stream -> counter
    std::uint64_t latest_stream_ = 0;                        // of the message before
    std::uint64_t* latest_ = nullptr;                        // its entry
};

}  // namespace mpisec::wire
