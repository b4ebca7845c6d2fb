// What two ranks say to each other when the first part of a large message was not accepted, so that its
// sender is not left waiting with segments that nobody receives:
//
// 1. The receiver, on the channel, sealed: "rejected", with the counter that the message claimed, its
//    communicator and tag. It says so once the receives before the rejected message's have completed: the
//    oldest message of that tag that it has not accepted is then the one that was meant.
// 2. The sender, likewise: "the rest", with the message's true counter and header, or that it knows of none.
// 3. The receiver takes the segments and throws them away; the send completes, as one that was received does.
//    Of a message that it had accepted it asks again: the sender then names the next that may be meant.
//
// A sender looks for rejections while a large send of its stands still; the receiver leaves at most a few
// unanswered and tells of the others one by one as answers come, so that whoever can inject messages cannot
// pile them up in MPI. An attacker who also holds these back causes what he can cause anyway by holding back
// messages: the stall report (S8).
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

/// Of a rejected message: whom MPI showed as its source, its tag, and the position of the receive that got it.
struct RejectedAt {
    int source;
    int tag;
    std::uint64_t position;
};

/// Receiver: says that a message on `comm` was rejected. `nonce`: its first bytes, if it has any, not to be
/// believed.
void tell_rejected(Communicator& comm, const RejectedAt& at, const std::uint8_t* nonce);

/// Receiver: a genuine message was rejected as replayed. If that was because a rejection had claimed its
/// counter, another was meant, whose counter the attacker had changed to this one's: says so.
void tell_misnamed(std::int32_t world_source, std::uint64_t counter);

/// Sender: answers what `world_peer` has rejected. To be called now and then while a large send stands still.
void answer_rejections(std::int32_t world_peer);

/// Receives the segments of a large message from `world_source` and drops them.
void throw_away(std::int32_t world_source, const wire::LargeHeader& header);

/// Stops listening; at the end of the job (M14).
void forget_rejections();

}  // namespace mpisec::shim
