// What ranks tell each other beside the program's messages, sealed, on the channel. Of two kinds:
//
//   skips   counters that will never come (S3): the program cancelled the send, or MPI refused the message after its
//           counter was taken. The receiver would keep a gap in its set of accepted counters for each, for ever, and
//           with it everything that waits for the gap to close. So the sender tells it which counters to take for used.
//   calls   what a rank called that waits long in a collective (collective/call_comparison.hpp)
//
// A sender has at most one notice under way to a rank, in synchronous mode: it knows when the receiver has it, and sends
// what has gathered since with its next message. A receiver looks for notices when the set of one sender has many gaps,
// and when it waits long. In MPI_Finalize each rank learns how many notices were sent to it and receives those that
// are left. None of them counts as a message of the program.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "shim/process/process.hpp"
#include "wire/call_notice.hpp"

namespace mpisec::shim {

struct Realm;

/// Sender: the message to `world_peer` with this counter was not sent and never will be.
void skip_counter(std::int32_t world_peer, std::uint64_t counter);

/// Sender: what it has called, to a rank that may know better. Those that it supersedes are not sent any more.
void tell_call(std::int32_t world_peer, const wire::CallNotice& call);

/// Sender: there are notices to send; then, to be called now and then, under the Guard.
inline constexpr std::atomic<bool>& notices_untold = process.notices_untold;
void tell_notices();

/// Gaps in the set of one sender's counters from which on a receiver looks for notices, and of how many
/// messages it looks at one.
inline constexpr std::size_t gaps_before_look = 32, messages_between_looks = 16;
/// Receiver: takes what `world_source` has told so far; and what anybody of a realm has.
void hear_notices(std::int32_t world_source);
void hear_notices(const Realm& realm);

/// In MPI_Finalize: notices that were sent to each rank of the world. Only calls that failed or ended are still told: others
/// may wait for that.
std::vector<std::uint64_t> notices_sent();
/// In MPI_Finalize, when all ranks are: receives the rest of the `expected` notices to this rank, and waits
/// for its own to be received; for a few seconds at most, for one may have been lost on the way. From then on calls are not
/// heard.
void finish_notices(std::uint64_t expected);

/// Before the channels are freed, those of sessions too: lets go of what is still under way.
void forget_notices();

}  // namespace mpisec::shim
