// What tells this job from the user's other jobs, alike on all its nodes and known to each process without the network between
// the nodes: what the launcher calls it.
//
// Two jobs with one key file, the same number of ranks and the same settings could otherwise be joined by whoever leads the
// connections of one to the other (docs/formal/two_jobs.vp).
#pragma once

#include <string>

#include "wire/hello.hpp"

namespace mpisec::shim {

using wire::JobMark;

/// `given` is MPISEC_JOB; empty: the launcher's name. Zeros where nothing names the job.
JobMark job_mark(const std::string& given);

}  // namespace mpisec::shim
