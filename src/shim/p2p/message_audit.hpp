// At the end of the job: was every sealed message received? (S8)
#pragma once

namespace mpisec::shim {

enum class AuditEnd {
    known,
    unknown,  ///< the sums did not come: the other ranks may yet sum two words for each rank
};

/// Collective over the job. Compares what was sealed for this rank with what this rank accepted, as they
/// stand now, and says a difference on standard error: messages lost on the way, or sent and never received
/// by the program.
///
/// One sum over all ranks, of a few words, tells whether there is any difference and any notice left. Only where
/// there is, two words for each rank are summed.
AuditEnd audit_messages();

/// Collective over the job, when this rank says nothing more to the others (forget_rejections): what one sends
/// another that has left would be unread when that one's connection closes, which resets it (TCP) and may
/// take the message audit along.
void final_barrier(AuditEnd audit);

}  // namespace mpisec::shim
