// Counts and times of what was sealed and opened, for MPISEC_STATS.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "shim/runtime/state.hpp"

namespace mpisec::shim {

inline constexpr Stats& stats = process.stats;

/// Counts one sealing or opening; times it only when MPISEC_STATS asks for it. Under the Guard, as its
/// callers are.
class StatsTimer {
  public:
    StatsTimer(Stats::Kind kind, std::size_t bytes) : row_(stats.rows[kind]) {
        ++row_.messages;
        row_.bytes += bytes;
        if (state.stats) start_ = std::chrono::steady_clock::now();
    }
    ~StatsTimer() {
        if (state.stats)
            row_.nanoseconds +=
                static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                               std::chrono::steady_clock::now() - start_)
                                               .count());
    }

  private:
    Stats::Row& row_;
    std::chrono::steady_clock::time_point start_;
};

/// Writes what MPISEC_STATS asks for: a table on standard error, or JSON to a file ("%r" in its path becomes
/// the rank). `replay_runs`: gaps in the sets of all senders' counters (skips.hpp).
void print_stats(std::size_t replay_runs);

}  // namespace mpisec::shim
