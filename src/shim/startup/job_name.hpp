// The launcher's name of this job, which tells it from the user's other jobs. It is the same on all nodes of the job, and each process
// knows it without using the network between the nodes.
//
// Without it, an attacker who leads the connections of one job to another could join two jobs with the same key file, the same number of
// ranks and the same settings (docs/formal/two_jobs.vp).
#pragma once

#include <string>

#include "wire/hello.hpp"

namespace mpisec::shim {

using wire::JobMark;

/// `given` is MPISEC_JOB; empty: the launcher's name. Zeros where nothing names the job.
JobMark job_mark(const std::string& given);

}  // namespace mpisec::shim
