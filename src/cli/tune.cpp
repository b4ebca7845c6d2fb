// mpisec tune: a selection table for a cluster.
#include "cli/tune.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "cli/commands.hpp"
#include "cli/say.hpp"
#include "fabric/sim/model_file.hpp"

namespace mpisec::cli {
namespace {

struct TuneOptions {
    bool simulate = false;
    std::string model, output;
    Grid grid = {{2, 4, 8, 16},
                 {1, 2, 4, 8, 16, 32},
                 {8, 32, 128, 512, 2 << 10, 8 << 10, 32 << 10, 128 << 10, 512 << 10, 2 << 20},
                 512};
    std::vector<std::string> collectives;  ///< empty: all
};

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

/// How the table was made, so that it can be made again.
std::string header(const TuneOptions& options) {
    std::string command = "mpisec tune --simulate";
    if (!options.model.empty()) command += " --model " + options.model;
    command += fmt::format(" --nodes {} --ranks-per-node {} --most-ranks {} --size {}",
                           fmt::join(options.grid.nodes, ","), fmt::join(options.grid.ranks_per_node, ","),
                           options.grid.most_ranks, fmt::join(options.grid.sizes, ","));
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
        return fail(fmt::format("can not write {}: {}.", path, std::strerror(errno)));
    return {};
}

Status tune(TuneOptions options) {
    if (!options.simulate)
        return complain("tune",
                        {"measuring on the cluster itself comes with the benchmarks of collectives, which "
                         "`mpisec bench` does not have yet; `mpisec tune --simulate --model NAME|FILE` makes "
                         "a table from a cluster's model."});
    const Result<fabric::sim::ClusterModel> model = fabric::sim::read_model(options.model);
    if (!model) return complain("tune", model.error());
    for (auto* list : {&options.grid.nodes, &options.grid.ranks_per_node})
        std::sort(list->begin(), list->end());
    std::sort(options.grid.sizes.begin(), options.grid.sizes.end());

    std::vector<coll::Rule> rules;
    for (coll::Collective collective : wanted(options)) {
        const auto some = rules_for(collective, options.grid, simulated_timer(*model));
        if (!some) return complain("tune", some.error());
        rules.insert(rules.end(), some->begin(), some->end());
        if (!options.output.empty())
            fmt::print(stderr, "{}: {} rule{}\n", name(collective), some->size(),
                       some->size() == 1 ? "" : "s");
    }
    const Result<void> written = write(options.output, header(options) + coll::Selection(rules).text());
    return written ? 0 : complain("tune", written.error());
}

}  // namespace

void add_tune(CLI::App& app, Status& status) {
    auto options = std::make_shared<TuneOptions>();
    std::vector<std::string> names;
    for (int i = 0; i < coll::collectives; ++i) names.emplace_back(name(static_cast<coll::Collective>(i)));
    CLI::App* command =
        app.add_subcommand("tune", "Make the table that says which algorithm serves which call");
    command->footer(
        "  mpisec tune --simulate --model noleland -o selection.toml\n"
        "  mpisec tune --simulate --model cluster.toml --nodes 4 --ranks-per-node 64 --collective allgather\n"
        "  MPISEC_TUNING=selection.toml mpiexec … mpisec exec ./app");
    command->add_flag("--simulate", options->simulate, "from a cluster's model; the only way so far");
    command->add_option("--model", options->model,
                        "as for mpisec sim: a name or a file; default: a 10 Gbit/s cluster");
    command->add_option("--nodes", options->grid.nodes, "numbers of nodes to try; default: 2 to 16")
        ->delimiter(',')
        ->check(CLI::Range(2, 4096));
    command
        ->add_option("--ranks-per-node", options->grid.ranks_per_node, "default: 1 to 32, in powers of two")
        ->delimiter(',')
        ->check(CLI::Range(1, 4096));
    command->add_option("--most-ranks", options->grid.most_ranks, "larger jobs are not tried; default: 512")
        ->check(CLI::Range(2, 4096));
    command
        ->add_option("--size", options->grid.sizes,
                     "bytes of a block or vector, multiples of 8; default: 8 to 2M in powers of four")
        ->delimiter(',')
        ->transform(CLI::AsSizeValue(false))
        ->check(CLI::Range(std::uint64_t{8}, std::uint64_t{1} << 33));
    command->add_option("--collective", options->collectives, "these only; default: all")
        ->delimiter(',')
        ->check(CLI::IsMember(names));
    command->add_option("-o,--output", options->output, "default: standard output");
    command->callback([options, &status] { status = tune(*options); });
}

}  // namespace mpisec::cli
