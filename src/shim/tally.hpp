// At the end of the job: was every sealed message received? (S8)
#pragma once

namespace mpisec::shim {

/// Collective over the job. Compares what was sealed for this rank with what this rank accepted, as they
/// stand now, and says a difference on standard error: messages lost on the way, or sent and never received
/// by the program.
void compare_tallies();

}  // namespace mpisec::shim
