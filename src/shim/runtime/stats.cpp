#include "shim/runtime/stats.hpp"

#include <unistd.h>

#include <cstdio>
#include <string>

#include "aead/aead.hpp"
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

void print_json(const std::string& path, std::size_t replay_runs) {
    std::FILE* file = std::fopen(path.c_str(), "w");
    if (!file) return say("MPISEC_STATS: cannot write " + path);
    char host[256] = "?";
    gethostname(host, sizeof host - 1);
    std::fprintf(file, "{\"rank\": %d, \"node\": \"%s\", \"library\": \"%s\"", state.world.rank, host,
                 crypto_library().c_str());
    for (int kind = 0; kind < Stats::kinds; ++kind) {
        const Stats::Row& row = stats.rows[static_cast<std::size_t>(kind)];
        std::fprintf(file, ", \"%s\": {\"messages\": %llu, \"bytes\": %llu, \"nanoseconds\": %llu}",
                     keys[kind], static_cast<unsigned long long>(row.messages),
                     static_cast<unsigned long long>(row.bytes),
                     static_cast<unsigned long long>(row.nanoseconds));
    }
    std::fprintf(file, ", \"replay_runs\": %zu}\n", replay_runs);
    const bool written = std::ferror(file) == 0;
    if (std::fclose(file) != 0 || !written) say("MPISEC_STATS: cannot write " + path);
}

/// Names in a trace; segments have spans of their own (segments.cpp).
constexpr const char* span_names[Stats::kinds] = {"seal",  "open",       nullptr,
                                                  nullptr, "seal block", "open block"};

}  // namespace

void StatsTimer::end() {
    const std::uint64_t now = trace_clock();
    row_.nanoseconds += now - start_;
    const char* name = span_names[&row_ - stats.rows.data()];
    if (tracing() && name) record({name, start_, now, {.bytes = static_cast<std::int64_t>(bytes_)}});
}

void print_stats(std::size_t replay_runs) {
    std::string how = state.settings.stats;
    if (how.empty()) return;
    if (how.rfind("json:", 0) == 0) {
        how.erase(0, 5);
        const std::size_t mark = how.find("%r");
        if (mark != std::string::npos)
            how.replace(mark, 2, std::to_string(state.world.rank));
        else
            how += "." + std::to_string(state.world.rank);
        return print_json(how, replay_runs);
    }
    std::string table = "statistics, " + crypto_library() + " (messages, bytes, milliseconds):";
    for (int kind = 0; kind < Stats::kinds; ++kind) {
        const Stats::Row& row = stats.rows[static_cast<std::size_t>(kind)];
        char line[160];
        std::snprintf(line, sizeof line, "\n    %-20s %12llu %16llu %12.3f", names[kind],
                      static_cast<unsigned long long>(row.messages),
                      static_cast<unsigned long long>(row.bytes), static_cast<double>(row.nanoseconds) / 1e6);
        table += line;
    }
    say(table);
}

}  // namespace mpisec::shim
