// At the end of the job: was every sealed message received? (S8)
#pragma once

namespace mpisec::shim {

enum class AuditEnd {
    known,
    unknown,  ///< the sums did not arrive: the other ranks may still sum two words for each rank
};

/// Collective over the job. Compares the number of messages sealed for this rank with the number that this rank has accepted so far, and
/// reports a difference on standard error: messages that were lost on the way, or that were sent and never received by the program.
///
/// One sum of a few words over all ranks tells whether there is any difference or any notice left. Only if there is, two words for each
/// rank are summed.
AuditEnd audit_messages();

/// Collective over the job, when this rank says nothing more to the others (forget_rejections). A message that is sent to a rank that has
/// already left would be unread when that rank's connection closes; this resets the connection (TCP) and may destroy the message audit with
/// it.
void final_barrier(AuditEnd audit);

}  // namespace mpisec::shim
