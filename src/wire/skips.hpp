// The notice in which a sender names counters that it will never use (docs/protocol.md, "Skipped counters").
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.hpp"

namespace mpisec::wire {

struct CounterRun {
    std::uint64_t first, last;  ///< both inclusive
    bool operator==(const CounterRun&) const = default;
};

inline constexpr std::size_t most_skipped_runs = 64;
/// Counters that one run may name: a sender names each of its messages once, so more is a fault.
inline constexpr std::uint64_t longest_skipped_run = std::uint64_t{1} << 32;
using SkipNotice = std::array<std::uint8_t, most_skipped_runs * 16>;

/// At most most_skipped_runs; unused places are filled with empty runs (first 1, last 0).
inline SkipNotice encode_skips(std::span<const CounterRun> runs) {
    SkipNotice notice;
    for (std::size_t i = 0; i < most_skipped_runs; ++i) {
        const CounterRun run = i < runs.size() ? runs[i] : CounterRun{1, 0};
        store_le(notice.data() + 16 * i, run.first);
        store_le(notice.data() + 16 * i + 8, run.last);
    }
    return notice;
}

inline std::vector<CounterRun> decode_skips(const SkipNotice& notice) {
    std::vector<CounterRun> runs;
    for (std::size_t i = 0; i < most_skipped_runs; ++i) {
        const CounterRun run{load_le<std::uint64_t>(notice.data() + 16 * i),
                             load_le<std::uint64_t>(notice.data() + 16 * i + 8)};
        if (run.first <= run.last && run.last - run.first < longest_skipped_run) runs.push_back(run);
    }
    return runs;
}

}  // namespace mpisec::wire
