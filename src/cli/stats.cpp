// mpisec stats: what the ranks of a job wrote with MPISEC_STATS=json:PATH, per rank and summed, also while it
// runs.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cli/commands.hpp"
#include "cli/say.hpp"

namespace mpisec::cli {
namespace {

using Json = nlohmann::json;

struct Row {
    const char* key;   ///< in the files
    const char* name;  ///< for people
};
constexpr Row kinds[] = {{"seal_small", "sealed"},
                         {"open_small", "opened"},
                         {"seal_segment", "sealed in segments"},
                         {"open_segment", "opened in segments"},
                         {"seal_collective", "sealed in collectives"},
                         {"open_collective", "opened in collectives"}};
constexpr Row traffics[] = {{"point_to_point", "point-to-point"},
                            {"partitioned", "partitioned"},
                            {"collective", "collectives"},
                            {"one_sided", "one-sided"},
                            {"file", "files"},
                            {"own", "MPIsec's own"}};
constexpr const char* counters[] = {"messages", "bytes", "nanoseconds"};
constexpr const char* directions[] = {"seal", "open"};

bool has_counters(const Json& holder, const char* key) {
    if (!holder.contains(key) || !holder[key].is_object()) return false;
    return std::ranges::all_of(counters, [&](const char* counter) {
        return holder[key].contains(counter) && holder[key][counter].is_number_unsigned();
    });
}

bool is_of_rank(const Json& rank) {
    if (!rank.is_object() || !rank.contains("rank") || !rank["rank"].is_number_integer()) return false;
    if (!rank.contains("traffic") || !rank["traffic"].is_object()) return false;
    const Json& traffic = rank["traffic"];
    return std::ranges::all_of(kinds, [&](const Row& kind) { return has_counters(rank, kind.key); }) &&
           std::ranges::all_of(traffics, [&](const Row& row) {
               return traffic.contains(row.key) && traffic[row.key].is_object() &&
                      has_counters(traffic[row.key], "seal") && has_counters(traffic[row.key], "open");
           });
}

Result<Json> read_rank(const std::string& path) {
    if (std::error_code error; !std::filesystem::exists(path, error))
        return fail("there is no file or directory " + path);
    std::ifstream file(path);
    // Deeper documents were not written by a rank, and copying one could exhaust the stack.
    const auto is_shallow = [](int depth, Json::parse_event_t, Json&) { return depth < 8; };
    Json rank = Json::parse(file, is_shallow, false);
    if (!file || !is_of_rank(rank))
        return fail(path + " is not a file that a rank wrote with MPISEC_STATS=json:PATH");
    return rank;
}

/// A directory stands for the files in it; files that are being written are left out.
std::vector<std::string> files_of(const std::vector<std::string>& paths) {
    std::vector<std::string> files;
    for (const std::string& path : paths) {
        std::error_code error;
        if (!std::filesystem::is_directory(path, error)) {
            files.push_back(path);
            continue;
        }
        for (const auto& entry : std::filesystem::directory_iterator(path, error))
            if (entry.path().extension() != ".part") files.push_back(entry.path().string());
    }
    return files;
}

Result<std::vector<Json>> read_ranks(const std::vector<std::string>& paths) {
    std::vector<Json> ranks;
    for (const std::string& file : files_of(paths)) {
        auto rank = read_rank(file);
        if (!rank) return tl::unexpected(rank.error());
        ranks.push_back(std::move(*rank));
    }
    std::ranges::sort(ranks, {}, [](const Json& rank) { return rank["rank"].get<int>(); });
    return ranks;
}

std::uint64_t of_rank(const Json& rank, const Row& traffic, const char* direction, const char* counter) {
    return rank["traffic"][traffic.key][direction][counter].get<std::uint64_t>();
}

std::uint64_t total(const std::vector<Json>& ranks, const Row& traffic, const char* direction,
                    const char* counter) {
    std::uint64_t counted = 0;
    for (const Json& rank : ranks) counted += of_rank(rank, traffic, direction, counter);
    return counted;
}

std::uint64_t total(const std::vector<Json>& ranks, const Row& kind, const char* counter) {
    std::uint64_t counted = 0;
    for (const Json& rank : ranks) counted += rank[kind.key][counter].get<std::uint64_t>();
    return counted;
}

/// The total of one rank over all kinds.
std::uint64_t total(const Json& rank, const char* counter) {
    std::uint64_t counted = 0;
    for (const Row& kind : kinds) counted += rank[kind.key][counter].get<std::uint64_t>();
    return counted;
}

std::uint64_t slowest(const std::vector<Json>& ranks, const Row& traffic) {
    std::uint64_t most = 0;
    for (const Json& rank : ranks)
        most = std::max(most, of_rank(rank, traffic, "seal", "nanoseconds") +
                                  of_rank(rank, traffic, "open", "nanoseconds"));
    return most;
}

double milliseconds(std::uint64_t nanoseconds) {
    return static_cast<double>(nanoseconds) / 1e6;
}

Json summary(const std::vector<Json>& ranks) {
    Json sums = Json::object();
    for (const Row& kind : kinds)
        for (const char* counter : counters) sums[kind.key][counter] = total(ranks, kind, counter);
    for (const Row& row : traffics) {
        for (const char* direction : directions)
            for (const char* counter : counters)
                sums["traffic"][row.key][direction][counter] = total(ranks, row, direction, counter);
        sums["traffic"][row.key]["slowest_rank_nanoseconds"] = slowest(ranks, row);
    }
    return {{"ranks", ranks}, {"sum", sums}};
}

std::string text_of(const Json& rank, const char* field) {
    return rank.contains(field) && rank[field].is_string() ? rank[field].get<std::string>() : "?";
}

double number_of(const Json& rank, const char* field) {
    return rank.contains(field) && rank[field].is_number() ? rank[field].get<double>() : 0;
}

void print_ranks(const std::vector<Json>& ranks) {
    fmt::print("{:>6}  {:<16} {:<34} {:>12} {:>16} {:>12} {:>10} {:>12}\n", "rank", "node", "crypto library",
               "messages", "bytes", "ms", "seconds", "MPI_Init ms");
    for (const Json& rank : ranks)
        fmt::print("{:>6}  {:<16} {:<34} {:>12} {:>16} {:>12.3f} {:>10.1f} {:>12.1f}\n",
                   rank["rank"].get<int>(), text_of(rank, "node"), text_of(rank, "library"),
                   total(rank, "messages"), total(rank, "bytes"), milliseconds(total(rank, "nanoseconds")),
                   number_of(rank, "seconds"), number_of(rank, "startup_nanoseconds") / 1e6);
}

void print_sums(const std::vector<Json>& ranks) {
    fmt::print("\n{:<16} {:>11} {:>15} {:>11} {:>11} {:>15} {:>11} {:>17}\n", "all ranks", "sealed", "bytes",
               "ms", "opened", "bytes", "ms", "ms, slowest rank");
    for (const Row& row : traffics) {
        fmt::print("{:<16}", row.name);
        for (const char* direction : directions)
            fmt::print(" {:>11} {:>15} {:>11.3f}", total(ranks, row, direction, "messages"),
                       total(ranks, row, direction, "bytes"),
                       milliseconds(total(ranks, row, direction, "nanoseconds")));
        fmt::print(" {:>17.3f}\n", milliseconds(slowest(ranks, row)));
    }
    fmt::print("\n{:<24} {:>12} {:>16} {:>12}\n", "by kind", "messages", "bytes", "ms");
    for (const Row& kind : kinds)
        fmt::print("{:<24} {:>12} {:>16} {:>12.3f}\n", kind.name, total(ranks, kind, "messages"),
                   total(ranks, kind, "bytes"), milliseconds(total(ranks, kind, "nanoseconds")));
}

struct StatsOptions {
    std::vector<std::string> files;
    bool as_json = false, live = false;
    double every = 2;  ///< seconds
};

Result<void> show_stats(const StatsOptions& options) {
    auto ranks = read_ranks(options.files);
    if (!ranks) return tl::unexpected(ranks.error());
    if (ranks->empty()) return fail("no rank has written a file yet");
    if (options.as_json) {
        fmt::print("{}\n", summary(*ranks).dump(1));
    } else {
        print_ranks(*ranks);
        print_sums(*ranks);
    }
    return {};
}

// --- While the job runs.

/// What all ranks have done so far, and when.
struct Look {
    std::chrono::steady_clock::time_point at = std::chrono::steady_clock::now();
    std::uint64_t messages[2]{}, bytes[2]{}, nanoseconds = 0;  ///< sealed, opened
    std::size_t ranks = 0, running = 0;
    double seconds = 0;
};

Look look_at(const std::vector<Json>& ranks) {
    Look look;
    look.ranks = ranks.size();
    for (const Json& rank : ranks) {
        look.running += !(rank.contains("ended") && rank["ended"].is_boolean() && rank["ended"].get<bool>());
        look.seconds = std::max(look.seconds, number_of(rank, "seconds"));
        look.nanoseconds += total(rank, "nanoseconds");
    }
    for (std::size_t i = 0; i < 2; ++i)
        for (const Row& row : traffics) {
            look.messages[i] += total(ranks, row, directions[i], "messages");
            look.bytes[i] += total(ranks, row, directions[i], "bytes");
        }
    return look;
}

void print_rates(const Look& before, const Look& now) {
    const double seconds = now.seconds - before.seconds;
    const auto rate = [&](std::uint64_t a, std::uint64_t b) {
        return seconds > 0 && b >= a ? static_cast<double>(b - a) / seconds : 0;
    };
    fmt::print("\n{} of {} ranks run, {:.1f} s; in the last {:.1f} s:", now.running, now.ranks, now.seconds,
               seconds);
    for (std::size_t i = 0; i < 2; ++i)
        fmt::print(" {} {:.0f} messages/s, {:.2f} MB/s;", i == 0 ? "sealed" : "opened",
                   rate(before.messages[i], now.messages[i]), rate(before.bytes[i], now.bytes[i]) / 1e6);
    const auto ranks = static_cast<double>(std::max<std::size_t>(now.ranks, 1));
    fmt::print(" {:.1f} % of the ranks' time\n",
               100 * rate(before.nanoseconds, now.nanoseconds) / 1e9 / ranks);
}

/// What it waits for, said once.
void announce_waiting(const std::vector<std::string>& paths) {
    std::error_code error;
    for (const std::string& path : paths)
        if (!std::filesystem::exists(path, error)) fmt::print("there is no file or directory {} yet\n", path);
    fmt::print("no rank has written yet; waiting\n");
}

/// Runs until all ranks that have a file have ended. A file that is not there yet, or was not written by a rank, is left out.
Result<void> watch_stats(const StatsOptions& options) {
    const bool terminal = isatty(STDOUT_FILENO) != 0;
    bool announced = false;
    std::optional<Look> before;
    for (;;) {
        std::vector<Json> ranks;
        for (const std::string& file : files_of(options.files))
            if (auto rank = read_rank(file)) ranks.push_back(std::move(*rank));
        std::ranges::sort(ranks, {}, [](const Json& rank) { return rank["rank"].get<int>(); });
        const Look now = look_at(ranks);
        if (!ranks.empty()) {
            if (terminal) fmt::print("\033[H\033[2J");
            constexpr std::size_t most_lines = 24;
            print_ranks({ranks.begin(),
                         ranks.begin() + static_cast<std::ptrdiff_t>(std::min(ranks.size(), most_lines))});
            print_sums(ranks);
            print_rates(before.value_or(Look{}), now);
        } else if (!std::exchange(announced, true)) {
            announce_waiting(options.files);
        }
        std::fflush(stdout);
        if (!ranks.empty() && now.running == 0) return {};
        before = now;
        std::this_thread::sleep_for(std::chrono::duration<double>(options.every));
    }
}

}  // namespace

void add_stats(CLI::App& app, Status& status) {
    CLI::App* command =
        app.add_subcommand("stats", "Sum up what the ranks of a job sealed (MPISEC_STATS=json:PATH)");
    command->footer(
        "  MPISEC_STATS=json:stats/%r mpiexec -n 64 mpisec exec ./app\n"
        "  mpisec stats stats\n\n"
        "  MPISEC_STATS=json:stats/%r MPISEC_STATS_INTERVAL=5 mpiexec -n 64 mpisec exec ./app &\n"
        "  mpisec stats --live stats\n\n"
        "A table with a line for each rank, and what all ranks sealed and opened for each class of calls. "
        "Jobs on one node seal nothing and write no file; others make the directory of PATH where it is "
        "missing. Times are those of sealing and opening alone, in whatever thread.");
    auto options = std::make_shared<StatsOptions>();
    command->add_option("FILES", options->files, "a file of each rank, or the directory that has them")
        ->required();
    command->add_flag("--json", options->as_json, "all ranks and the sums as JSON");
    command
        ->add_flag("--live", options->live,
                   "Refresh, with rates since the last time, until all ranks have ended")
        ->excludes("--json");
    command->add_option("--every", options->every, "Seconds between refreshes (2)")
        ->check(CLI::Range(0.1, 3600.0))
        ->needs("--live");
    command->callback([=, &status] {
        auto done = options->live ? watch_stats(*options) : show_stats(*options);
        status = done ? 0 : complain("stats", done.error());
    });
}

}  // namespace mpisec::cli
