// MPISEC_TRACE: when each rank called, sealed, handed over, waited and opened, for chrome://tracing and Perfetto
// (docs/tracing.md). Names, times, sizes and ranks; never a key, a tag, a nonce or content.
//
// Spans of one thread nest: one that began inside another ends inside it. What is under way beside them, such as a segment that the MPI
// library has, is a span of its own that does not nest.
//
// Without MPISEC_TRACE, each place that records costs one test of tracing().
#pragma once

#include <time.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "shim/pmpi/real.hpp"
#include "shim/runtime/state.hpp"

namespace mpisec::shim {

/// Reads a cache line that the call has read already. A thread that sees the flag set also sees what start_trace() made before.
inline bool tracing() {
    return gate.tracing.load(std::memory_order_acquire);
}

/// Nanoseconds of CLOCK_MONOTONIC, which all processes of a machine share.
inline std::uint64_t trace_clock() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

/// What a span is about; fields that do not apply stay negative and are left out.
struct TraceFacts {
    std::int64_t bytes = -1;    ///< of plaintext
    std::int32_t peer = -1;     ///< world rank
    std::int64_t message = -1;  ///< a large message's counter between the two ranks
    std::int64_t segment = -1;  ///< of that message
};

/// Where a span is drawn: with those of the calling thread, with those of a worker, or beside them.
enum class TraceTrack : std::uint8_t { thread, worker, beside };

struct TraceSpan {
    const char* name;  ///< lives for ever
    std::uint64_t begin, end;
    TraceFacts facts{};
    TraceTrack track = TraceTrack::thread;
    unsigned worker = 0;
};

void start_trace();  ///< when MPISEC_TRACE says so
void write_trace();  ///< at the end of protection; nothing is recorded afterwards

/// Everything but start_trace() and write_trace() may be called only while tracing().
[[gnu::cold]] void record(const TraceSpan& span);
/// Records a look at the MPI library; looks that follow each other become one span.
[[gnu::cold]] void record_poll(std::uint64_t begin, std::uint64_t end);

/// MPI_Test, in which the MPI library moves what is under way; recorded as a look.
inline int test_request(MPI_Request& request, int& flag, MPI_Status* status) {
    if (!tracing()) [[likely]]
        return real.Test(&request, &flag, status);
    const std::uint64_t begin = trace_clock();
    const int code = real.Test(&request, &flag, status);
    record_poll(begin, trace_clock());
    return code;
}

/// The time when a call of the program began, which call_ended() records; 0 without a trace.
inline std::uint64_t call_begins() {
    if (!tracing()) [[likely]]
        return 0;
    return trace_clock();
}
[[gnu::cold]] void call_ended(const char* name, std::uint64_t began);

/// Records a span from its construction to its destruction, if tracing() at its construction.
class TraceScope {
  public:
    explicit TraceScope(const char* name, const TraceFacts& facts = {}) : name_(name), facts_(facts) {
        if (tracing()) [[unlikely]]
            begin_ = trace_clock();
    }
    ~TraceScope() {
        if (begin_ != 0) [[unlikely]]
            record({name_, begin_, trace_clock(), facts_});
    }
    TraceScope(const TraceScope&) = delete;
    TraceScope& operator=(const TraceScope&) = delete;

  private:
    const char* name_;
    TraceFacts facts_;
    std::uint64_t begin_ = 0;
};

}  // namespace mpisec::shim
