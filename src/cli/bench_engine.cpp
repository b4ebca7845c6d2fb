#include "cli/bench_engine.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sys/utsname.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "aead/calibration.hpp"
#include "cli/engine_lane.hpp"
#include "cli/median.hpp"
#include "cli/size_text.hpp"
#include "engine/topology.hpp"
#include "wire/stream.hpp"

namespace mpisec::cli {
namespace {

/// A case with the results of its rounds.
struct Measured {
    EngineCase one;
    std::vector<EngineTime> times;
    std::vector<double> efficiency;  ///< compared with one thread in the same round, the first of these cases

    double median_of(double EngineTime::*value) const;
    double thread_s_per_gb(std::size_t thread) const;
};

double Measured::median_of(double EngineTime::*value) const {
    std::vector<double> all;
    for (const EngineTime& time : times) all.push_back(time.*value);
    return median(all);
}

double Measured::thread_s_per_gb(std::size_t thread) const {
    std::vector<double> all;
    for (const EngineTime& time : times) all.push_back(time.thread_s_per_gb[thread]);
    return median(all);
}

std::vector<engine::HardwareThread> usable_threads() {
    cpu_set_t mask;
    std::vector<unsigned> cpus;
    if (sched_getaffinity(0, sizeof mask, &mask) == 0)
        for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu)
            if (CPU_ISSET(cpu, &mask)) cpus.push_back(cpu);
    return engine::topology_of(cpus, "/sys/devices/system");
}

/// 1 to all hardware threads; where there are many, not every number.
std::vector<unsigned> default_threads(std::size_t all) {
    std::vector<unsigned> threads;
    for (unsigned n = 1; n <= all; n += n < 8 ? 1 : n < 16 ? 2 : n < 32 ? 4 : 8) threads.push_back(n);
    if (threads.empty()) threads.push_back(1);
    if (threads.back() < all) threads.push_back(static_cast<unsigned>(all));
    return threads;
}

/// In ascending order; one thread is always among them, because the efficiency of more is in relation to it.
std::vector<unsigned> threads_of(const BenchEngineOptions& options) {
    if (options.threads.empty()) return default_threads(usable_threads().size());
    std::set<unsigned> wanted(options.threads.begin(), options.threads.end());
    wanted.insert(1);
    return {wanted.begin(), wanted.end()};
}

std::vector<EngineCase> cases_of(const BenchEngineOptions& options, const std::vector<unsigned>& threads) {
    std::vector<EngineCase> all;
    for (bool receives : {false, true})
        for (bool messages : {false, true})
            for (std::size_t bytes : messages ? options.messages : options.packets)
                for (unsigned n : threads)
                    all.push_back({receives, bytes,
                                   messages
                                       ? wire::automatic_segment_bytes(bytes, 0, wire::Cutting::slow_cipher)
                                       : std::size_t{0},
                                   n, options.dedicated, options.tcp});
    return all;
}

/// The cases of one size and direction take turns, so that a change of the machine's speed affects all of them.
Result<std::vector<Measured>> measure(const BenchEngineOptions& options, const aead::Selection& selection,
                                      const std::vector<unsigned>& threads) {
    std::vector<Measured> all;
    for (const EngineCase& one : cases_of(options, threads)) all.push_back({one, {}, {}});
    for (std::size_t first = 0; first < all.size(); first += threads.size())
        for (int round = 0; round < options.rounds; ++round)
            for (std::size_t i = first; i < first + threads.size(); ++i) {
                Result<EngineTime> time = time_engine(all[i].one, selection, options.milliseconds / 1000);
                if (!time) return tl::unexpected(time.error());
                all[i].times.push_back(*time);
                const double alone = all[first].times.back().gb_per_s;
                all[i].efficiency.push_back(time->gb_per_s / (alone * all[i].one.threads));
            }
    return all;
}

/// The largest link on the market that this throughput would fill.
unsigned link_gbit(double gb_per_s) {
    unsigned fits = 0;
    for (unsigned gbit : {1u, 10u, 25u, 40u, 50u, 100u, 200u, 400u, 800u, 1600u})
        if (gbit <= gb_per_s * 8) fits = gbit;
    return fits;
}

nlohmann::json row_of(const Measured& one) {
    nlohmann::json row = {
        {"operation", one.one.receives ? "receive" : "send"},
        {"kind", one.one.segment ? "message" : "packet"},
        {"bytes", one.one.bytes},
        {"threads", one.one.threads},
        {"gb_per_s", one.median_of(&EngineTime::gb_per_s)},
        {"efficiency", median(one.efficiency)},
        {"efficiency_low", *std::min_element(one.efficiency.begin(), one.efficiency.end())},
        {"efficiency_high", *std::max_element(one.efficiency.begin(), one.efficiency.end())},
        {"communicating_s_per_gb", one.median_of(&EngineTime::communicating)},
        {"useful_threads", one.times.back().useful_threads},
        {"rounds", one.times.size()}};
    if (one.one.segment) row["segment"] = one.one.segment;
    for (std::size_t thread = 0; thread < one.times[0].thread_s_per_gb.size(); ++thread)
        row["thread_s_per_gb"].push_back(one.thread_s_per_gb(thread));
    return row;
}

std::string now_utc() {
    char text[32];
    const time_t now = time(nullptr);
    tm utc{};
    gmtime_r(&now, &utc);
    return std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc) ? text : "";
}

nlohmann::json conditions_of(const BenchEngineOptions& options, const aead::Selection& selection) {
    std::set<unsigned> cores, nodes;
    const std::vector<engine::HardwareThread> threads = usable_threads();
    for (const engine::HardwareThread& thread : threads) cores.insert(thread.core), nodes.insert(thread.node);
    nlohmann::json libraries;
    for (const aead::Library* library : selection.library)
        if (library) libraries.push_back(std::string(library->name()));
    double load = 0;
    getloadavg(&load, 1);
    utsname system{};
    uname(&system);
    return {
        {"cpu", aead::calibration_key(selection.cipher, "").cpu},
        {"cores", cores.size()},
        {"hardware_threads", threads.size()},
        {"memories", nodes.size()},
        {"kernel", system.release},
        {"load", std::round(load * 100) / 100},
        {"cipher", std::string(aead::info(selection.cipher).name)},
        {"libraries", libraries},
        {"link", options.tcp ? "TCP through the loopback device" : "handed over in memory"},
        {"communicating_thread", options.dedicated ? "communicates only" : "seals and opens while it waits"}};
}

void print_table(const nlohmann::json& document) {
    const nlohmann::json& about = document["conditions"];
    fmt::print("{}; {} cores, {} hardware threads; {}; {}; the communicating thread {}\n",
               about["cpu"].get<std::string>(), about["cores"].get<int>(),
               about["hardware_threads"].get<int>(), about["cipher"].get<std::string>(),
               about["link"].get<std::string>(), about["communicating_thread"].get<std::string>());
    fmt::print(
        "efficiency: throughput over that of one thread times threads; time: of each thread in the crypto "
        "library, ms per GB, the communicating one first\n\n{:<8} {:<8} {:>8} {:>7} {:>8} {:>8} {:>10} "
        "{:>13} "
        "{:>8} {:>13}  {}\n",
        "", "", "size", "threads", "GB/s", "Gbit/s", "efficiency", "(range)", "useful", "fills a link",
        "time");
    for (const nlohmann::json& row : document["rows"]) {
        std::string times;
        for (const nlohmann::json& one : row["thread_s_per_gb"])
            times += fmt::format(" {:.0f}", one.get<double>() * 1e3);
        if (about["link"] != "handed over in memory")
            times += fmt::format("; {:.0f} communicating", row["communicating_s_per_gb"].get<double>() * 1e3);
        const double speed = row["gb_per_s"].get<double>();
        fmt::print("{:<8} {:<8} {:>8} {:>7} {:>8.2f} {:>8.1f} {:>10.2f} {:>13} {:>8} {:>8} Gb/s {}\n",
                   row["operation"].get<std::string>(), row["kind"].get<std::string>(),
                   size_text(row["bytes"].get<std::uint64_t>()), row["threads"].get<unsigned>(), speed,
                   speed * 8, row["efficiency"].get<double>(),
                   fmt::format("{:.2f} to {:.2f}", row["efficiency_low"].get<double>(),
                               row["efficiency_high"].get<double>()),
                   row["useful_threads"].get<unsigned>(), link_gbit(speed), times);
    }
    fmt::print(
        "\nJacquin et al. 2010 (8 cores, AES-CTR, buffers of 3 kB): 0.8 Gbit/s with one thread, 5.75 of 10 "
        "Gbit/s "
        "with 15 and one that communicates\n");
}

int refuse(const Error& error) {
    fmt::print(stderr, "mpisec bench engine: {}\n", error.message);
    return 2;
}

}  // namespace

int bench_engine(const BenchEngineOptions& options) {
    const auto begin = std::chrono::steady_clock::now();
    const std::string started = now_utc();
    for (const std::vector<std::size_t>* sizes : {&options.packets, &options.messages})
        if (std::count(sizes->begin(), sizes->end(), 0u) > 0) return refuse({"0 bytes cannot be timed."});
    if (!(options.milliseconds > 0)) return refuse({"--milliseconds is no time above 0."});
    const Result<aead::Selection> selection = aead::select(options.aead, "");
    if (!selection) return refuse(selection.error());
    const std::vector<unsigned> threads = threads_of(options);
    const nlohmann::json conditions = conditions_of(options, *selection);
    const Result<std::vector<Measured>> all = measure(options, *selection, threads);
    if (!all) return refuse(all.error());
    nlohmann::json document = {
        {"format", "mpisec-result-1"},
        {"benchmark", "engine"},
        {"title", "Sealing and opening on several cores"},
        {"command", options.words},
        {"complete", true},
        {"started", started},
        {"seconds",
         std::round(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count())},
        {"conditions", conditions},
        {"rows", nlohmann::json::array()}};
    for (const Measured& one : *all) document["rows"].push_back(row_of(one));
    if (!options.output.empty() && !(std::ofstream(options.output) << document.dump(1) << "\n"))
        return refuse({options.output + " cannot be written."});
    if (options.json)
        fmt::print("{}\n", document.dump(1));
    else
        print_table(document);
    return 0;
}

}  // namespace mpisec::cli
