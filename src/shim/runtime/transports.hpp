// Libraries in this process that carry data to other nodes past MPI.
#pragma once

namespace mpisec::shim {

/// At the end of the job, when the program has loaded all that it loads: one rank of each node reports them, because their traffic was not
/// protected. Libraries that MPI libraries load for themselves are not reported.
void report_transports();

}  // namespace mpisec::shim
