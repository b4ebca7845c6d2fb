#include "shim/runtime/trace.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/replaced_file.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/runtime/threads.hpp"

namespace mpisec::shim {
namespace {

/// Some 80 MB; later spans are counted, not kept.
constexpr std::size_t most_spans = 1'000'000;
/// Looks further apart than this are two spans: the program has done something else in between.
constexpr std::uint64_t longest_pause = 2'000;
/// Tracks of engine workers and of what is under way, beside those of the program's threads.
constexpr unsigned first_worker_track = 1000, track_beside = 2000;

constexpr const char* poll_name = "MPI progress";

}  // namespace

struct Trace {
    struct Kept {
        TraceSpan span;
        unsigned track;
        unsigned looks;  ///< how many were merged
    };
    struct Thread {
        const char* mark;
        std::size_t last;  ///< index of its newest span plus one; 0: none
    };

    std::mutex mutex;
    std::deque<Kept> spans;
    std::vector<Thread> threads;
    std::uint64_t dropped = 0;

    unsigned track_of_this_thread() {
        for (unsigned i = 0; i < threads.size(); ++i)
            if (threads[i].mark == &thread_mark) return i;
        threads.push_back({&thread_mark, 0});
        return static_cast<unsigned>(threads.size() - 1);
    }
    void keep(const TraceSpan& span, unsigned track, unsigned looks = 0) {
        if (spans.size() >= most_spans) {
            ++dropped;
            return;
        }
        spans.push_back({span, track, looks});
        if (track < threads.size()) threads[track].last = spans.size();
    }
};

namespace {

/// A JSON string; characters that would need more escaping than this become '?' (for host names and names of procedures).
std::string json_string(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        out += c < ' ' || c > '~' ? '?' : c;
    }
    return out + '"';
}

class TraceFile {
  public:
    explicit TraceFile(const std::string& path) : file_(path) {}
    bool good() const { return file_.good(); }
    void put(std::string_view text) {
        text_ += text;
        if (text_.size() > 1 << 16) flush();
    }
    bool finish() {
        flush();
        return file_.finish();
    }

  private:
    void flush() {
        file_.write(text_);
        text_.clear();
    }
    ReplacedFile file_;
    std::string text_;
};

std::string arguments(const Trace::Kept& kept) {
    const TraceFacts& facts = kept.span.facts;
    std::string out;
    const auto add = [&](const char* name, std::int64_t value) {
        if (value >= 0)
            out += (out.empty() ? "\"" : ", \"") + std::string(name) + "\": " + std::to_string(value);
    };
    add("bytes", facts.bytes);
    add("peer", facts.peer);
    add("message", facts.message);
    add("segment", facts.segment);
    if (kept.looks > 0) add("looks", kept.looks);
    return out;
}

/// Microseconds with three decimals, as the format requires.
std::string microseconds(std::uint64_t nanoseconds) {
    char text[40];
    std::snprintf(text, sizeof text, "%llu.%03u", static_cast<unsigned long long>(nanoseconds / 1000),
                  static_cast<unsigned>(nanoseconds % 1000));
    return text;
}

std::string as_json(const Trace::Kept& kept, std::size_t number) {
    const TraceSpan& span = kept.span;
    const std::string who =
        "\"pid\": " + std::to_string(state.world.rank) + ", \"tid\": " + std::to_string(kept.track);
    const std::string common = "{\"name\": " + json_string(span.name) + ", \"cat\": \"mpisec\", " + who;
    const std::string about = "\"args\": {" + arguments(kept) + "}}";
    if (span.track != TraceTrack::beside)
        return common + ", \"ph\": \"X\", \"ts\": " + microseconds(span.begin) +
               ", \"dur\": " + microseconds(span.end - span.begin) + ", " + about;
    const std::string id =
        ", \"id\": \"" + std::to_string(state.world.rank) + "." + std::to_string(number) + "\"";
    return common + ", \"ph\": \"b\"" + id + ", \"ts\": " + microseconds(span.begin) + ", " + about + ",\n" +
           common + ", \"ph\": \"e\"" + id + ", \"ts\": " + microseconds(span.end) + ", \"args\": {}}";
}

std::string name_of_track(unsigned track) {
    if (track == track_beside) return "under way";
    if (track >= first_worker_track) return "worker " + std::to_string(track - first_worker_track);
    return track == 0 ? "program" : "program, thread " + std::to_string(track);
}

std::string metadata(const char* what, unsigned track, const std::string& value) {
    return "{\"name\": \"" + std::string(what) +
           "\", \"ph\": \"M\", \"pid\": " + std::to_string(state.world.rank) +
           ", \"tid\": " + std::to_string(track) + ", \"args\": {\"name\": " + json_string(value) + "}}";
}

/// CLOCK_REALTIME minus CLOCK_MONOTONIC, by which traces of several machines are aligned.
std::int64_t clock_offset() {
    timespec real_time;
    clock_gettime(CLOCK_REALTIME, &real_time);
    return static_cast<std::int64_t>(real_time.tv_sec) * 1'000'000'000 + real_time.tv_nsec -
           static_cast<std::int64_t>(trace_clock());
}

void write_to(TraceFile& file, const Trace& trace) {
    char host[256] = "?";
    gethostname(host, sizeof host - 1);
    file.put("{\"displayTimeUnit\": \"ns\",\n\"otherData\": {\"rank\": " + std::to_string(state.world.rank) +
             ", \"node\": " + json_string(host) + ", \"clock_offset_ns\": " + std::to_string(clock_offset()) +
             ", \"dropped\": " + std::to_string(trace.dropped) + "},\n\"traceEvents\": [\n");
    file.put(metadata("process_name", 0, "rank " + std::to_string(state.world.rank) + " (" + host + ")"));
    std::vector<unsigned> named;
    for (std::size_t i = 0; i < trace.spans.size(); ++i) {
        const Trace::Kept& kept = trace.spans[i];
        bool known = false;
        for (const unsigned track : named) known = known || track == kept.track;
        if (!known) {
            named.push_back(kept.track);
            file.put(",\n" + metadata("thread_name", kept.track, name_of_track(kept.track)));
        }
        file.put(",\n" + as_json(kept, i));
    }
    file.put("\n]}\n");
}

}  // namespace

void start_trace() {
    if (state.settings.trace.empty() || process.trace) return;
    process.trace = new Trace();
    gate.tracing.store(true, std::memory_order_release);
}

void record(const TraceSpan& span) {
    Trace& trace = *process.trace;
    const std::lock_guard lock(trace.mutex);
    switch (span.track) {
        case TraceTrack::thread:
            return trace.keep(span, trace.track_of_this_thread());
        case TraceTrack::worker:
            return trace.keep(
                span, span.worker == 0 ? trace.track_of_this_thread() : first_worker_track + span.worker);
        case TraceTrack::beside:
            return trace.keep(span, track_beside);
    }
}

void call_ended(const char* name, std::uint64_t began) {
    if (tracing()) record({name, began, trace_clock()});
}

void record_poll(std::uint64_t begin, std::uint64_t end) {
    Trace& trace = *process.trace;
    const std::lock_guard lock(trace.mutex);
    const unsigned track = trace.track_of_this_thread();
    if (const std::size_t last = trace.threads[track].last; last > 0) {
        Trace::Kept& newest = trace.spans[last - 1];
        if (newest.looks > 0 && begin - newest.span.end < longest_pause) {
            newest.span.end = end;
            ++newest.looks;
            return;
        }
    }
    trace.keep({poll_name, begin, end}, track, 1);
}

void write_trace() {
    if (!tracing()) return;
    gate.tracing.store(false, std::memory_order_relaxed);
    Trace& trace = *process.trace;
    const std::lock_guard lock(trace.mutex);
    const std::string& directory = state.settings.trace;
    if (mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST)
        return say("MPISEC_TRACE: cannot make the directory " + directory + ": " + std::strerror(errno));
    const std::string path = directory + "/rank-" + std::to_string(state.world.rank) + ".json";
    TraceFile file(path);
    if (file.good()) write_to(file, trace);
    if (!file.finish()) say("MPISEC_TRACE: cannot write " + path);
    if (trace.dropped > 0)
        say("MPISEC_TRACE: " + std::to_string(trace.dropped) + " spans came after the first " +
            std::to_string(most_spans) + " and are not in " + path);
    trace.spans.clear();
    trace.threads.clear();  // another thread may have seen tracing() before
}

}  // namespace mpisec::shim
