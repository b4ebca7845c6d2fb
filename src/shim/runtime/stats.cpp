#include "shim/runtime/stats.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "aead/aead.hpp"
#include "base/replaced_file.hpp"
#include "shim/runtime/errors.hpp"

namespace mpisec::shim {

namespace {

constexpr const char* names[Stats::kinds] = {"sealed",
                                             "opened",
                                             "sealed in segments",
                                             "opened in segments",
                                             "sealed in collectives",
                                             "opened in collectives"};
constexpr const char* keys[Stats::kinds] = {"seal_small",   "open_small",      "seal_segment",
                                            "open_segment", "seal_collective", "open_collective"};
constexpr const char* traffic_names[traffics] = {"point-to-point", "partitioned", "collectives",
                                                 "one-sided",      "files",       "MPIsec's own"};
constexpr const char* traffic_keys[traffics] = {"point_to_point", "partitioned", "collective",
                                                "one_sided",      "file",        "own"};
constexpr std::size_t seals = 0, opens = 1;  ///< kinds alternate between them

struct Sum {
    std::uint64_t messages = 0, bytes = 0, nanoseconds = 0;
    Sum& operator+=(const Stats::Row& row) {
        messages += row.messages.load(std::memory_order_relaxed);
        bytes += row.bytes.load(std::memory_order_relaxed);
        nanoseconds += row.nanoseconds.load(std::memory_order_relaxed);
        return *this;
    }
};

Sum sum_of_kind(std::size_t kind) {
    Sum sum;
    for (const auto& rows : stats.rows) sum += rows[kind];
    return sum;
}

/// `direction`: seals or opens.
Sum sum_of_traffic(std::size_t traffic, std::size_t direction) {
    Sum sum;
    for (std::size_t kind = direction; kind < Stats::kinds; kind += 2) sum += stats.rows[traffic][kind];
    return sum;
}

/// "aes-256-gcm by ipsec-mb, boringssl": for small messages first.
std::string crypto_library() {
    const aead::Selection& selection = state.world.selection;
    std::string libraries;
    for (const aead::Library* library : selection.library) {
        if (!library ||
            (", " + libraries + ",").find(", " + std::string(library->name()) + ",") != std::string::npos)
            continue;
        libraries += (libraries.empty() ? "" : ", ") + std::string(library->name());
    }
    return std::string(aead::info(selection.cipher).name) + " by " + libraries;
}

void print_sum(std::FILE* file, const char* name, const Sum& sum) {
    std::fprintf(file, "\"%s\": {\"messages\": %llu, \"bytes\": %llu, \"nanoseconds\": %llu}", name,
                 static_cast<unsigned long long>(sum.messages), static_cast<unsigned long long>(sum.bytes),
                 static_cast<unsigned long long>(sum.nanoseconds));
}

void print_fields(std::FILE* file, bool ended, std::size_t replay_runs) {
    char host[256] = "?";
    gethostname(host, sizeof host - 1);
    std::fprintf(file, "{\"rank\": %d, \"node\": \"%s\", \"library\": \"%s\"", state.world.rank, host,
                 crypto_library().c_str());
    for (std::size_t kind = 0; kind < Stats::kinds; ++kind) {
        std::fprintf(file, ", ");
        print_sum(file, keys[kind], sum_of_kind(kind));
    }
    std::fprintf(file, ", \"traffic\": {");
    for (std::size_t traffic = 0; traffic < traffics; ++traffic) {
        std::fprintf(file, "%s\"%s\": {", traffic == 0 ? "" : ", ", traffic_keys[traffic]);
        print_sum(file, "seal", sum_of_traffic(traffic, seals));
        std::fprintf(file, ", ");
        print_sum(file, "open", sum_of_traffic(traffic, opens));
        std::fprintf(file, "}");
    }
    std::fprintf(file, "}, \"startup_nanoseconds\": %llu, \"seconds\": %.3f, \"ended\": %s",
                 static_cast<unsigned long long>(stats.startup_nanoseconds),
                 static_cast<double>(steady_nanoseconds() - stats.began) / 1e9, ended ? "true" : "false");
    if (ended) std::fprintf(file, ", \"replay_runs\": %zu", replay_runs);
    std::fprintf(file, "}\n");
}

/// MPISEC_STATS=json:PATH's path for this rank.
std::string json_path() {
    std::string path = state.settings.stats.substr(std::strlen("json:"));
    const std::size_t mark = path.find("%r");
    if (mark != std::string::npos)
        path.replace(mark, 2, std::to_string(state.world.rank));
    else
        path += "." + std::to_string(state.world.rank);
    return path;
}

/// What this rank has counted so far, as a line of JSON.
std::string fields(bool ended, std::size_t replay_runs) {
    char* text = nullptr;
    std::size_t bytes = 0;
    std::FILE* stream = open_memstream(&text, &bytes);
    if (!stream) return {};
    print_fields(stream, ended, replay_runs);
    std::fclose(stream);
    const std::string copy(text, bytes);
    std::free(text);
    return copy;
}

void report_failure(const std::string& what) {
    if (!std::exchange(stats.failure_reported, true)) say("MPISEC_STATS: " + what);
}

/// "stats/" of "stats/3"; empty for a file of the working directory.
std::string directory_of(const std::string& path) {
    return path.substr(0, path.rfind('/') + 1);
}

/// A reader of the file sees the old or the new one.
void replace_json(bool ended, std::size_t replay_runs) {
    const std::string path = json_path(), text = fields(ended, replay_runs);
    ReplacedFile file(path, 0666);
    file.write(text);
    if (!file.finish()) report_failure("cannot write " + path + ": " + std::strerror(errno));
}

void print_table() {
    std::string table = "statistics, " + crypto_library() + " (messages, bytes, milliseconds):";
    for (std::size_t kind = 0; kind < Stats::kinds; ++kind) {
        const Sum sum = sum_of_kind(kind);
        char line[160];
        std::snprintf(line, sizeof line, "\n    %-22s %12llu %16llu %12.3f", names[kind],
                      static_cast<unsigned long long>(sum.messages),
                      static_cast<unsigned long long>(sum.bytes), static_cast<double>(sum.nanoseconds) / 1e6);
        table += line;
    }
    say(table);
}

/// Milliseconds of sealing and opening, of the rank that spent most.
double slowest(const std::vector<std::uint64_t>& maxima, std::size_t traffic) {
    return static_cast<double>(maxima[traffic]) / 1e6;
}

/// Names in a trace; segments have spans of their own (segments.cpp).
constexpr const char* span_names[Stats::kinds] = {"seal",  "open",       nullptr,
                                                  nullptr, "seal block", "open block"};

}  // namespace

void StatsTimer::end() {
    const std::uint64_t now = steady_nanoseconds();
    add(row_.nanoseconds, now - start_);
    const char* name = span_names[kind_];
    if (tracing() && name) record({name, start_, now, {.bytes = static_cast<std::int64_t>(bytes_)}});
}

void print_stats(std::size_t replay_runs) {
    const std::string& how = state.settings.stats;
    if (how == "ranks") return print_table();
    if (!stats_go_to_files()) return;
    prepare_stats_directory();  // not done yet in a program that has sessions only
    replace_json(true, replay_runs);
}

bool stats_go_to_files() {
    return state.settings.stats.rfind("json:", 0) == 0;
}

void prepare_stats_directory() {
    const std::string directory = directory_of(json_path());
    if (directory.empty()) return;
    if (mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST)
        report_failure("cannot make the directory " + directory + ": " + std::strerror(errno));
    else if (access(directory.c_str(), W_OK | X_OK) != 0)
        report_failure("cannot write files in " + directory + ": " + std::strerror(errno));
}

void write_running_stats() {
    replace_json(false, 0);
}

std::vector<std::uint64_t> stats_sums() {
    std::vector<std::uint64_t> sums;
    for (std::size_t traffic = 0; traffic < traffics; ++traffic)
        for (const std::size_t direction : {seals, opens}) {
            const Sum sum = sum_of_traffic(traffic, direction);
            sums.insert(sums.end(), {sum.messages, sum.bytes, sum.nanoseconds});
        }
    return sums;
}

std::vector<std::uint64_t> stats_maxima() {
    std::vector<std::uint64_t> maxima;
    for (std::size_t traffic = 0; traffic < traffics; ++traffic)
        maxima.push_back(sum_of_traffic(traffic, seals).nanoseconds +
                         sum_of_traffic(traffic, opens).nanoseconds);
    maxima.push_back(stats.startup_nanoseconds);
    maxima.push_back(steady_nanoseconds() - stats.began);
    return maxima;
}

void print_job_stats(const std::vector<std::uint64_t>& sums, const std::vector<std::uint64_t>& maxima) {
    const std::string& how = state.settings.stats;
    if (how != "1" && how != "ranks") return;
    char line[200];
    std::snprintf(line, sizeof line,
                  "statistics of %d ranks in %.1f s, %s; MPI_Init took %.1f ms more:", state.world.size,
                  static_cast<double>(maxima[traffics + 1]) / 1e9, crypto_library().c_str(),
                  static_cast<double>(maxima[traffics]) / 1e6);
    std::string table = line;
    std::snprintf(line, sizeof line, "\n    %-15s %11s %15s %11s %11s %15s %11s %17s", "", "sealed", "bytes",
                  "ms", "opened", "bytes", "ms", "ms, slowest rank");
    table += line;
    for (std::size_t traffic = 0; traffic < traffics; ++traffic) {
        const std::uint64_t* sum = &sums[traffic * 6];
        if (sum[0] + sum[3] == 0) continue;
        std::snprintf(line, sizeof line, "\n    %-15s %11llu %15llu %11.3f %11llu %15llu %11.3f %17.3f",
                      traffic_names[traffic], static_cast<unsigned long long>(sum[0]),
                      static_cast<unsigned long long>(sum[1]), static_cast<double>(sum[2]) / 1e6,
                      static_cast<unsigned long long>(sum[3]), static_cast<unsigned long long>(sum[4]),
                      static_cast<double>(sum[5]) / 1e6, slowest(maxima, traffic));
        table += line;
    }
    say(table);
}

}  // namespace mpisec::shim
