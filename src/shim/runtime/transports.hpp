// Libraries in this process that carry data to other nodes past MPI.
#pragma once

namespace mpisec::shim {

/// At the end of the job, when the program has loaded what it loads: one rank of each node reports them, for
/// their traffic was not protected. Not those that MPI libraries load for themselves.
void report_transports();

}  // namespace mpisec::shim
