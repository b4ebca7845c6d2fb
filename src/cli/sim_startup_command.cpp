// mpisec sim startup: prints what cli/sim_startup.hpp simulates.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/say.hpp"
#include "cli/sim_command.hpp"
#include "cli/sim_startup.hpp"
#include "cli/simulate.hpp"
#include "fabric/sim/model_file.hpp"

namespace mpisec::cli {
namespace {

struct StartupOptions {
    SimulatedCluster cluster;
    double handshake_us = 0;  ///< 0: measured here
    bool json = false;
};

NodeTraffic median_of(std::vector<NodeTraffic> traffic) {
    NodeTraffic median;
    for (auto member : {&NodeTraffic::sent, &NodeTraffic::received}) {
        std::ranges::nth_element(traffic, traffic.begin() + static_cast<std::ptrdiff_t>(traffic.size() / 2),
                                 {}, member);
        median.*member = traffic[traffic.size() / 2].*member;
    }
    return median;
}

void print_startup(const StartupOptions& options, const StartupReport& report, double handshake) {
    const NodeTraffic median = median_of(report.traffic), first = report.traffic.front();
    fmt::print(
        "Start-up of {} ranks on {} nodes, {} placement; cluster model: {}; a handshake computes for {:.0f} "
        "µs\n\n",
        options.cluster.ranks, options.cluster.nodes, options.cluster.placement, model_name(options.cluster),
        handshake * 1e6);
    fmt::print("{:<44} {:>14}\n", "messages one after the other", report.rounds);
    fmt::print("{:<44} {:>14}\n", "bytes of all cards", report.card_bytes);
    fmt::print("{:<44} {:>14}\n", "bytes that the median node receives, sends",
               fmt::format("{}, {}", median.received, median.sent));
    fmt::print("{:<44} {:>14}\n", "bytes that the first node receives, sends",
               fmt::format("{}, {}", first.received, first.sent));
    fmt::print("{:<44} {:>14}\n", "bytes of memory per rank: meanwhile, lasting",
               fmt::format("{}, {}", report.bytes_while_starting, report.lasting_bytes));
    const auto per_node = static_cast<std::uint64_t>((options.cluster.ranks + options.cluster.nodes - 1) /
                                                     options.cluster.nodes);
    fmt::print(
        "{:<44} {:>14}\n", "of all ranks of a node",
        fmt::format("{}, {}", report.bytes_while_starting * per_node, report.lasting_bytes * per_node));
    fmt::print("{:<44} {:>14}\n", "virtual ms: cards, in all",
               fmt::format("{:.2f}, {:.2f}", report.cards_seconds * 1e3, report.seconds * 1e3));
}

nlohmann::json to_json(const NodeTraffic& traffic) {
    return {{"received", traffic.received}, {"sent", traffic.sent}};
}

Status sim_startup(const StartupOptions& options) {
    if (const std::string why = nonsense(options.cluster); !why.empty()) {
        complain("sim startup", {why});
        return 2;
    }
    const Result<fabric::sim::ClusterModel> model = fabric::sim::read_model(options.cluster.model);
    if (!model) return complain("sim startup", model.error());
    const double handshake = options.handshake_us > 0 ? options.handshake_us * 1e-6 : time_of_handshake();
    const StartupReport report = simulate_startup(
        placed(options.cluster.ranks, options.cluster.nodes, options.cluster.placement), *model, handshake);
    if (!options.json) {
        print_startup(options, report, handshake);
        return 0;
    }
    const nlohmann::json document = {{"ranks", options.cluster.ranks},
                                     {"nodes", options.cluster.nodes},
                                     {"placement", options.cluster.placement},
                                     {"model", model_json(*model)},
                                     {"handshake_us", handshake * 1e6},
                                     {"rounds", report.rounds},
                                     {"card_bytes", report.card_bytes},
                                     {"median_node", to_json(median_of(report.traffic))},
                                     {"first_node", to_json(report.traffic.front())},
                                     {"rank_bytes_meanwhile", report.bytes_while_starting},
                                     {"rank_bytes_lasting", report.lasting_bytes},
                                     {"cards_ms", report.cards_seconds * 1e3},
                                     {"ms", report.seconds * 1e3}};
    fmt::print("{}\n", document.dump(1));
    return 0;
}

}  // namespace

void add_sim_startup(CLI::App& sim, Status& status) {
    auto options = std::make_shared<StartupOptions>();
    CLI::App* command = sim.add_subcommand("startup", "What MPI_Init's start-up sends, keeps and takes");
    command->footer("  mpisec sim startup --ranks 1048576 --nodes 8192");
    add_cluster_size(*command, options->cluster, 1 << 24, 1 << 20);
    add_cluster_model(*command, options->cluster);
    command
        ->add_option("--handshake", options->handshake_us,
                     "µs that both sides of a handshake compute; default: measured here")
        ->check(CLI::PositiveNumber);
    command->add_flag("--json", options->json, "one JSON document");
    command->callback([options, &status] { status = sim_startup(*options); });
}

}  // namespace mpisec::cli
