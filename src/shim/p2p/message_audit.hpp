// At the end of the job: was every sealed message received? (S8)
#pragma once

namespace mpisec::shim {

/// Collective over the job. Compares what was sealed for this rank with what this rank accepted, as they
/// stand now, and says a difference on standard error: messages lost on the way, or sent and never received
/// by the program.
void audit_messages();

/// Collective over the job, when this rank says nothing more to the others (forget_rejections): what one sends
/// another that has left would be unread when that one's connection closes, which resets it (TCP) and may
/// take the message audit along.
void final_barrier();

}  // namespace mpisec::shim
