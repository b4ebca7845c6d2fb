// What ranks tell each other beside the program's messages, sealed, on the channel. There are two kinds:
//
//   skips   counters that will never arrive (S3): the program cancelled the send, or MPI refused the message after its
//           counter was taken. For each, the receiver would keep a gap in its set of accepted counters for ever, and with
//           it everything that waits for the gap to close. So the sender tells it which counters to treat as used.
//   calls   what a rank that waits long in a collective has called (collective/call_comparison.hpp)
//
// A sender has at most one notice under way to a rank. It sends it in synchronous mode, so it learns when the receiver has it, and then
// sends what has gathered since in the next notice. A receiver looks for notices when its set for one sender has many gaps, and when it has
// waited long. In MPI_Finalize each rank learns how many notices were sent to it and receives those that are left. No notice counts as a
// message of the program.
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

/// Sender: tells a rank that may know better what this rank has called. Waiting notices that this one supersedes are not sent any more.
void tell_call(std::int32_t world_peer, const wire::CallNotice& call);

/// Sender: whether there are notices to send; then tell_notices() must be called now and then, under the Guard.
inline constexpr std::atomic<bool>& notices_untold = process.notices_untold;
void tell_notices();

/// How many gaps in the set of one sender's counters make a receiver look for notices, and in how many messages it then looks once.
inline constexpr std::size_t gaps_before_look = 32, messages_between_looks = 16;
/// Receiver: takes the notices that `world_source` has sent so far; or those that anybody in a realm has sent.
void hear_notices(std::int32_t world_source);
void hear_notices(const Realm& realm);

/// In MPI_Finalize: the number of notices that were sent to each rank of the world. From then on only calls that failed or ended are told:
/// other ranks may wait for that.
std::vector<std::uint64_t> notices_sent();
/// In MPI_Finalize, when all ranks are in it: receives the rest of the `expected` notices to this rank, and waits until its own have been
/// received; for a few seconds at most, because a notice may have been lost on the way. From then on notices of calls are ignored.
void finish_notices(std::uint64_t expected);

/// Before the channels, those of sessions included, are freed: lets go of what is still under way.
void forget_notices();

}  // namespace mpisec::shim
