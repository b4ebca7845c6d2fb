// mpisec tune: a selection table for a cluster.
#include "cli/tune.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/python_command.hpp"
#include "cli/say.hpp"
#include "cli/shell_word.hpp"
#include "cli/side_by_side.hpp"
#include "fabric/sim/model_file.hpp"

namespace mpisec::cli {
namespace {

struct TuneOptions {
    bool simulate = false;
    std::string model, times, output;
    std::string launch, mpicc = "mpicc", mpi = "mpich-5", keep_times;  ///< for measuring
    Grid grid{{}, {}, {}, 512};            ///< empty lists: the defaults of the source of times
    std::vector<std::string> collectives;  ///< empty: all, and messages
};

const Grid simulated_grid = {{2, 4, 8, 16},
                             {1, 2, 4, 8, 16, 32},
                             {8, 32, 128, 512, 2 << 10, 8 << 10, 32 << 10, 128 << 10, 512 << 10, 2 << 20},
                             512};
const Grid measured_grid = {{2}, {1, 2}, {64, 1 << 10, 16 << 10, 256 << 10, 1 << 20}, 512};

void fill(Grid& grid, const Grid& defaults) {
    if (grid.nodes.empty()) grid.nodes = defaults.nodes;
    if (grid.ranks_per_node.empty()) grid.ranks_per_node = defaults.ranks_per_node;
    if (grid.sizes.empty()) grid.sizes = defaults.sizes;
    for (auto* list : {&grid.nodes, &grid.ranks_per_node}) std::sort(list->begin(), list->end());
    std::sort(grid.sizes.begin(), grid.sizes.end());
}

// What --collective calls messages between two ranks.
constexpr const char* messages_name = "messages";
const std::vector<std::uint64_t> message_thresholds = {0, 64 << 10, 256 << 10};
const std::vector<std::int64_t> message_segments = {0, 128 << 10, 512 << 10, 1 << 20, -1};
const std::vector<std::uint64_t> message_sizes = {128 << 10, 256 << 10, 512 << 10, 1 << 20,
                                                  2 << 20,   4 << 20,   8 << 20,   16 << 20};

bool wants_messages(const TuneOptions& options) {
    const auto& names = options.collectives;
    return names.empty() || std::find(names.begin(), names.end(), messages_name) != names.end();
}

std::vector<coll::Collective> wanted(const TuneOptions& options) {
    std::vector<coll::Collective> some;
    for (int i = 0; i < coll::collectives; ++i) {
        const auto one = static_cast<coll::Collective>(i);
        const auto& names = options.collectives;
        if (names.empty() || std::find(names.begin(), names.end(), name(one)) != names.end())
            some.push_back(one);
    }
    return some;
}

/// How the table was made, so that it can be made again. `measured_by`: the command that measured all the times, where that is known.
std::string header(const TuneOptions& options, const std::string& measured_by) {
    std::string command = "mpisec tune --times " + shell_word(options.times);
    if (!measured_by.empty() && options.collectives.empty()) command = measured_by;
    if (options.simulate) {
        command = "mpisec tune --simulate";
        if (!options.model.empty()) command += " --model " + shell_word(options.model);
        command +=
            fmt::format(" --nodes {} --ranks-per-node {} --most-ranks {} --size {}",
                        fmt::join(options.grid.nodes, ","), fmt::join(options.grid.ranks_per_node, ","),
                        options.grid.most_ranks, fmt::join(options.grid.sizes, ","));
    }
    if (!options.collectives.empty())
        command += fmt::format(" --collective {}", fmt::join(options.collectives, ","));
    return "# Which algorithm serves which call (docs/collectives.md). Made by\n#   " + command + "\n";
}

Result<void> write(const std::string& path, const std::string& text) {
    if (path.empty()) {
        std::fputs(text.c_str(), stdout);
        return {};
    }
    std::FILE* file = std::fopen(path.c_str(), "w");
    const bool written = file && std::fputs(text.c_str(), file) >= 0;
    if (!file || std::fclose(file) != 0 || !written)
        return fail(fmt::format("cannot write {}: {}.", path, std::strerror(errno)));
    return {};
}

Status write_table(const TuneOptions& options, const std::vector<coll::Collective>& collectives,
                   const Timer& timer, const coll::MessageRules& messages = {},
                   const std::string& measured_by = "") {
    std::vector<Result<std::vector<coll::Rule>>> found(collectives.size());
    side_by_side(collectives.size(), usable_cores(),
                 [&](std::size_t i) { found[i] = rules_for(collectives[i], options.grid, timer); });
    std::vector<coll::Rule> rules;
    for (std::size_t i = 0; i < collectives.size(); ++i) {
        const auto& some = found[i];
        if (!some) return complain("tune", some.error());
        rules.insert(rules.end(), some->begin(), some->end());
        if (!options.output.empty())
            fmt::print(stderr, "{}: {} rule{}\n", name(collectives[i]), some->size(),
                       some->size() == 1 ? "" : "s");
    }
    const Result<void> written =
        write(options.output, header(options, measured_by) + coll::Selection(rules, messages).text());
    return written ? 0 : complain("tune", written.error());
}

Status from_simulation(TuneOptions options) {
    const Result<fabric::sim::ClusterModel> model = fabric::sim::read_model(options.model);
    if (!model) return complain("tune", model.error());
    if (wanted(options).empty())
        return complain("tune",
                        {"messages between two ranks are measured, not simulated: leave --simulate out"});
    fill(options.grid, simulated_grid);
    return write_table(options, wanted(options), simulated_timer(*model));
}

Status from_times(TuneOptions options) {
    Result<MeasuredTimes> times = read_times(options.times);
    if (!times) return complain("tune", times.error());
    options.grid = times->grid;
    std::vector<coll::Collective> measured;
    for (coll::Collective one : wanted(options))
        if (times->collectives.contains(one)) measured.push_back(one);
    const coll::MessageRules messages =
        wants_messages(options) ? message_rules_for(times->messages) : coll::MessageRules();
    return write_table(options, measured, times->timer, messages, times->command);
}

/// Becomes the program that runs the jobs (bench/mpisec_bench/tune.py), which takes one JSON document and
/// comes back here with --times.
Status by_measuring(TuneOptions options) {
    fill(options.grid, measured_grid);
    nlohmann::json trials = nlohmann::json::object(), messages;
    if (wants_messages(options))
        messages = {
            {"thresholds", message_thresholds}, {"segments", message_segments}, {"sizes", message_sizes}};
    for (coll::Collective collective : wanted(options))
        for (const coll::Entry& entry : algorithms(collective))
            trials[std::string(name(collective))].push_back(entry.name);
    const nlohmann::json task = {{"trials", trials},
                                 {"messages", messages},
                                 {"nodes", options.grid.nodes},
                                 {"ranks_per_node", options.grid.ranks_per_node},
                                 {"most_ranks", options.grid.most_ranks},
                                 {"sizes", options.grid.sizes},
                                 {"launch", options.launch},
                                 {"mpicc", options.mpicc},
                                 {"mpi", options.mpi},
                                 {"keep_times", options.keep_times},
                                 {"output", options.output},
                                 {"collectives", options.collectives}};
    return complain("tune", become_python("mpisec_bench.tune", {task.dump()}));
}

/// Options that the source of times does not use, as a sentence; empty where there are none.
std::string options_without_effect(const CLI::App& command) {
    const auto named = [&](std::initializer_list<const char*> options) {
        std::string names;
        for (const char* option : options)
            if (command.count(option) > 0) names += (names.empty() ? "" : ", ") + std::string(option);
        return names;
    };
    if (command.count("--simulate") > 0) return {};
    std::string names, why;
    if (command.count("--times") > 0) {
        names = named({"--launch", "--mpicc", "--mpi", "--keep-times", "--nodes", "--ranks-per-node",
                       "--most-ranks", "--size"});
        why = "--times measures nothing: it makes the table of the times in its file";
    } else if (command.count("--launch") > 0) {
        names = named({"--mpi"});
        why = "--launch starts ranks of your own MPI, for which --mpicc compiles";
    } else {
        names = named({"--mpicc"});
        why = "without --launch the lab's nodes are measured, for whose --mpi the lab compiles";
    }
    return names.empty() ? names : fmt::format("{}; leave out what has no effect then: {}", why, names);
}

/// What is wrong with the command line beyond what its parser knows; empty when nothing is.
std::string wrong_in(const CLI::App& command, const TuneOptions& options) {
    for (std::uint64_t size : options.grid.sizes)
        if (size % 8 != 0)
            return fmt::format("--size {}: reductions combine elements of 8 bytes; give multiples of 8",
                               size);
    for (const char* option : {"--launch", "--times"})
        if (command.count(option) > 0 && command.get_option(option)->as<std::string>().empty())
            return fmt::format("{} is empty", option);
    return options_without_effect(command);
}

/// Options that say where times come from.
void add_sources(CLI::App& command, TuneOptions& options) {
    CLI::Option* simulated = command.add_flag("--simulate", options.simulate, "from a cluster's model");
    auto option = [&](const char* name, std::string& value, const char* about) {
        return command.add_option(name, value, about);
    };
    option("--model", options.model, "as for mpisec sim: a name or a file; default: a 10 Gbit/s cluster")
        ->needs(simulated);
    option("--launch", options.launch,
           "what starts ranks on the cluster; {ranks}, {nodes} and {each} (ranks per node) are put in")
        ->excludes(simulated);
    option("--mpicc", options.mpicc, "compiler of the MPI that --launch starts; default: mpicc")
        ->excludes(simulated);
    option("--mpi", options.mpi, "the lab's MPI; default: mpich-5")->excludes(simulated);
    option("--keep-times", options.keep_times, "a file for the measured times, as JSON")->excludes(simulated);
    option("--times", options.times, "from such a file, without measuring again")->excludes(simulated);
}

/// Options that say which clusters, sizes and collectives to try.
void add_grid(CLI::App& command, TuneOptions& options) {
    command
        .add_option("--nodes", options.grid.nodes, "numbers of nodes to try; default: 2; simulated, 2 to 16")
        ->delimiter(',')
        ->check(CLI::Range(2, 4096));
    command
        .add_option("--ranks-per-node", options.grid.ranks_per_node, "default: 1 and 2; simulated, 1 to 32")
        ->delimiter(',')
        ->check(CLI::Range(1, 4096));
    command
        .add_option("--most-ranks", options.grid.most_ranks,
                    "larger jobs are not tried, but for the first of --nodes; default: 512")
        ->check(CLI::Range(2, 4096));
    command
        .add_option("--size", options.grid.sizes,
                    "bytes of a block or vector, multiples of 8; default: 64 to 1M; simulated, 8 to 2M")
        ->delimiter(',')
        ->transform(CLI::AsSizeValue(false))
        ->check(CLI::Range(std::uint64_t{8}, std::uint64_t{1} << 33));
    std::vector<std::string> names;
    for (int i = 0; i < coll::collectives; ++i) names.emplace_back(name(static_cast<coll::Collective>(i)));
    names.emplace_back(messages_name);
    command
        .add_option(
            "--collective", options.collectives,
            "these only; messages: how large ones between two ranks are cut, not simulated; default: all")
        ->delimiter(',')
        ->check(CLI::IsMember(names));
}

}  // namespace

void add_tune(CLI::App& app, Status& status) {
    auto options = std::make_shared<TuneOptions>();
    CLI::App* command =
        app.add_subcommand("tune", "Make the table that says which algorithm serves which call");
    command->footer(
        "Measures, on the lab's nodes or with --launch on a cluster; takes minutes. --simulate takes a model "
        "of a cluster instead.\n\n"
        "  mpisec tune -o selection.toml\n"
        "  mpisec tune --launch 'mpiexec -n {ranks} -ppn {each}' --nodes 2,4 --ranks-per-node 64 -o "
        "selection.toml\n"
        "  mpisec tune --simulate --model noleland -o selection.toml\n"
        "  MPISEC_TUNING=selection.toml mpiexec … mpisec exec ./app");
    add_sources(*command, *options);
    add_grid(*command, *options);
    command->add_option("-o,--output", options->output, "default: standard output");
    command->callback([options, command, &status] {
        if (const std::string wrong = wrong_in(*command, *options); !wrong.empty()) {
            complain("tune", {wrong});
            status = 2;
            return;
        }
        status = options->simulate         ? from_simulation(*options)
                 : !options->times.empty() ? from_times(*options)
                                           : by_measuring(*options);
    });
}

}  // namespace mpisec::cli
