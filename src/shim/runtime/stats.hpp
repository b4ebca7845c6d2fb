// Counts and times of what was sealed and opened, for MPISEC_STATS.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "shim/runtime/state.hpp"
#include "shim/runtime/trace.hpp"

namespace mpisec::shim {

inline constexpr Stats& stats = process.stats;

/// No other thread adds at the same time: a load and a store suffice, and cost as much as a plain addition.
inline void add(std::atomic<std::uint64_t>& counter, std::uint64_t value) {
    counter.store(counter.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
}

inline std::uint64_t steady_nanoseconds() {
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                          std::chrono::steady_clock::now().time_since_epoch())
                                          .count());
}

inline Stats::Row& stats_row(Traffic traffic, Stats::Kind kind) {
    return stats.rows[static_cast<std::size_t>(traffic)][kind];
}

/// All that was sealed and opened: the number changes when something has moved.
inline std::uint64_t messages_counted() {
    std::uint64_t messages = 0;
    for (const auto& kinds : stats.rows)
        for (const Stats::Row& row : kinds) messages += row.messages.load(std::memory_order_relaxed);
    return messages;
}

/// Counts one sealing or opening whose time is added later, when it is known.
inline void count(Traffic traffic, Stats::Kind kind, std::size_t bytes) {
    Stats::Row& row = stats_row(traffic, kind);
    add(row.messages, 1);
    add(row.bytes, bytes);
}

/// Counts one sealing or opening; times it only when MPISEC_STATS or MPISEC_TRACE asks for it. Under the Guard,
/// as its callers are.
class StatsTimer {
  public:
    StatsTimer(Traffic traffic, Stats::Kind kind, std::size_t bytes)
        : row_(stats_row(traffic, kind)), kind_(kind), bytes_(bytes) {
        add(row_.messages, 1);
        add(row_.bytes, bytes);
        if (state.timed) start_ = steady_nanoseconds();
    }
    ~StatsTimer() {
        if (state.timed) end();
    }
    StatsTimer(const StatsTimer&) = delete;
    StatsTimer& operator=(const StatsTimer&) = delete;

  private:
    [[gnu::cold]] void end();

    Stats::Row& row_;
    const Stats::Kind kind_;
    const std::size_t bytes_;
    std::uint64_t start_ = 0;
};

/// What the traffic of `procedure` with ranks of other nodes is counted as: windows and files have messages and collectives of their own.
inline Traffic traffic_of_collective(const char* procedure) {
    const auto begins = [procedure](const char* word) {
        return std::strncmp(procedure, word, std::strlen(word)) == 0;
    };
    if (begins("MPI_Win_")) return Traffic::one_sided;
    if (begins("MPI_File_")) return Traffic::file;
    if (begins("MPI_Comm_") || begins("MPI_Intercomm_") || begins("MPI_Cart_") || begins("MPI_Graph_") ||
        begins("MPI_Dist_graph_"))
        return Traffic::own;
    return Traffic::collective;
}

/// Writes what MPISEC_STATS asks of each rank: a table on standard error, or JSON to a file ("%r" in its path
/// becomes the rank). `replay_runs`: gaps in the sets of all senders' counters (skips.hpp).
void print_stats(std::size_t replay_runs);
/// MPISEC_STATS=json:PATH
bool stats_go_to_files();
/// Makes the directory of PATH where it is missing. When the file cannot be written there, it is reported now and not after hours.
void prepare_stats_directory();
/// Writes the JSON of a rank that is still running, in place of what the file had before.
void write_running_stats();

/// For the whole job: numbers that the ranks add up, then those of which the largest counts (message_audit.cpp).
std::vector<std::uint64_t> stats_sums();
std::vector<std::uint64_t> stats_maxima();
void print_job_stats(const std::vector<std::uint64_t>& sums, const std::vector<std::uint64_t>& maxima);

}  // namespace mpisec::shim
