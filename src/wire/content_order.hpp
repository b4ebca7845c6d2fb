// Checks whether the messages that were received are those that were sent, in MPI's order, when receives complete in another order (MPI 5.0
// section 3.5; MPISEC_SAME_NODE=verify).
//
// The sender leaves a record of each message; MPI matches the messages of one (communicator, source, tag), in the order of their records,
// to receives, in the order of their positions. A receive can be seen to complete while earlier ones have not: its record is then not the
// first one left.
#pragma once

#include <cstdint>
#include <deque>
#include <map>

namespace mpisec::wire {

/// What is compared of a message: its length, and the message itself or a keyed hash of it, followed by zeros.
struct Content {
    std::uint64_t bytes = 0;
    std::uint8_t check[40] = {};
    bool operator==(const Content&) const = default;
};

/// What a receive got. If the message did not fit, all that is known of it is that it was longer than content.bytes.
struct ReceivedContent {
    Content content;
    bool truncated = false;
    bool matches(const Content& sent) const {
        return truncated ? sent.bytes > content.bytes : sent == content;
    }
};

/// One per (communicator, source, tag).
class ContentOrder {
  public:
    /// `number` grows with the messages.
    void sent(std::uint32_t number, const Content& content) { sent_.push_back({number, content}); }
    /// The sender took back what it had announced.
    void withdrawn(std::uint32_t number);

    /// The receive at `position` got `received`. False when no way is left to give every receive so far a message of its own, in order:
    /// this message, or one before it, was not sent by the rank that it claims to be from. Every unfinished receive that can still get a
    /// message has position `oldest` or later.
    bool received(std::uint64_t position, const ReceivedContent& received, std::uint64_t oldest);

    bool empty() const { return sent_.empty() && received_.empty(); }

  private:
    struct Sent {
        std::uint32_t number;
        Content content;
    };
    bool possible() const;
    bool settle(std::uint64_t oldest);

    std::deque<Sent> sent_;                              ///< not settled
    std::map<std::uint64_t, ReceivedContent> received_;  ///< not settled, by position
};

}  // namespace mpisec::wire
