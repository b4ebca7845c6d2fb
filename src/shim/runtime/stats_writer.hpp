// MPISEC_STATS_INTERVAL: a thread that sleeps, and now and then writes what the rank has sealed so far.
#pragma once

namespace mpisec::shim {

/// Where MPISEC_STATS names a file and the interval is not 0. Where it names a file, makes its directory.
void start_stats_writer();
void stop_stats_writer();  ///< joins it (M14)

}  // namespace mpisec::shim
