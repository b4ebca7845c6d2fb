// What two ranks tell each other when the first part of a large message was not accepted, so that its sender is not left waiting with
// segments that nobody receives:
//
// 1. The receiver sends, sealed on the channel: "rejected", with the counter that the message claimed, its communicator and tag. It does so
//    once the receives posted before that of the rejected message have completed: the oldest message of that tag that it has not accepted
//    is then the one that was meant.
// 2. The sender answers in the same way: "the rest", with the message's true counter and header, or that it knows of none.
// 3. The receiver takes the segments and throws them away; the send completes, as one that was received does. If the receiver had already
//    accepted the message named, it asks again: the sender then names the next one that may be meant.
//
// A sender looks for rejections while one of its large sends makes no progress; the receiver leaves at most a few unanswered and reports
// the others one by one as answers arrive, so that whoever can inject messages cannot pile them up in MPI. An attacker who also holds these
// back causes only what he can cause anyway by holding back messages: the stall report (S8).
#pragma once

#include <cstdint>

#include "wire/frame.hpp"

namespace mpisec::shim {

struct Communicator;

struct Announcement {
    std::int32_t world_peer;
    wire::ContextId context;
    int tag;
    std::uint64_t counter;
    wire::LargeHeader header;
    bool settled = false;  ///< the receiver has been told of the rest, or has taken all of it
};

/// A large message whose segments are being sent. Registers itself while it lives, and leaves its
/// announcement behind for a while.
class LargeSend : public Announcement {
  public:
    explicit LargeSend(const Announcement& announcement);
    ~LargeSend();
    LargeSend(const LargeSend&) = delete;
    LargeSend& operator=(const LargeSend&) = delete;
};

/// A rejected message: the rank that MPI showed as its source, its tag, and the position of the receive that got it.
struct RejectedAt {
    int source;
    int tag;
    std::uint64_t position;
};

/// Receiver: says that a message on `comm` was rejected. `nonce`: the message's first bytes, if it has any; they cannot be trusted.
void tell_rejected(Communicator& comm, const RejectedAt& at, const std::uint8_t* nonce);

/// Receiver: a genuine message was rejected as replayed. If the reason is that a rejection had claimed its counter, another message was
/// meant, whose counter the attacker had changed to this one's: says so.
void tell_misnamed(std::int32_t world_source, std::uint64_t counter);

/// Sender: answers what `world_peer` has rejected. Must be called now and then while a large send makes no progress.
void answer_rejections(std::int32_t world_peer);

/// Receives the segments of a large message from `world_source` and drops them.
void throw_away(std::int32_t world_source, const wire::LargeHeader& header);

/// Stops listening; at the end of the job (M14).
void forget_rejections();

}  // namespace mpisec::shim
