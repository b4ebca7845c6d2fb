// Counts and times of what was sealed and opened, for MPISEC_STATS.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shim/runtime/state.hpp"
#include "shim/runtime/trace.hpp"

namespace mpisec::shim {

inline constexpr Stats& stats = process.stats;

/// Counts one sealing or opening; times it only when MPISEC_STATS or MPISEC_TRACE asks for it. Under the Guard,
/// as its callers are.
class StatsTimer {
  public:
    StatsTimer(Stats::Kind kind, std::size_t bytes) : row_(stats.rows[kind]), bytes_(bytes) {
        ++row_.messages;
        row_.bytes += bytes;
        if (state.timed) start_ = trace_clock();
    }
    ~StatsTimer() {
        if (state.timed) end();
    }
    StatsTimer(const StatsTimer&) = delete;
    StatsTimer& operator=(const StatsTimer&) = delete;

  private:
    [[gnu::cold]] void end();

    Stats::Row& row_;
    std::size_t bytes_;
    std::uint64_t start_ = 0;
};

/// Writes what MPISEC_STATS asks for: a table on standard error, or JSON to a file ("%r" in its path becomes
/// the rank). `replay_runs`: gaps in the sets of all senders' counters (skips.hpp).
void print_stats(std::size_t replay_runs);

}  // namespace mpisec::shim
