#include "cli/sim_startup.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "keys/noise.hpp"
#include "wire/node_cards.hpp"

namespace mpisec::cli {
namespace {

using fabric::Topology;
using fabric::sim::ClusterModel;
using wire::NodeCards;

// Sizes of the handshake's messages, with what precedes and follows them (docs/protocol.md, "Handshakes between leaders").
constexpr std::uint64_t initiation_bytes = 84, answer_bytes = 48, secret_bytes = 49, count_bytes = 20;
// Shares of what both sides compute in a handshake: the child before its message, the parent, the child after the answer.
constexpr double initiating = 0.25, answering = 0.5, finishing = 0.25;

class Startup {
  public:
    Startup(const Topology& topology, const ClusterModel& model, double handshake)
        : topology_(topology), model_(model), handshake_(handshake), has_cards_(size_of(topology.nodes())) {
        report_.traffic.resize(size_of(topology.nodes()));
    }

    StartupReport run() {
        int span = 1;
        while (span < topology_.ranks()) span *= 2;
        const Collected all = collect(0, span);
        report_.card_bytes = wire::encode(all.cards).size();
        hand_down(0, span, all.seconds, all.depth);
        note_memory(all.cards);
        make_handshakes();
        return std::move(report_);
    }

  private:
    struct Collected {
        NodeCards cards;
        double seconds = 0;  ///< when they are complete
        int depth = 0;       ///< messages one after the other until then
    };

    static std::size_t size_of(int n) { return static_cast<std::size_t>(n); }

    /// The hello of a rank on a machine like all others, bound to a core of its own.
    wire::Hello hello(int rank) const {
        const int node = topology_.node(rank);
        wire::Hello hello;
        hello.rank = rank;
        for (std::size_t byte = 0; byte < 4; ++byte)
            hello.node_id[byte] = static_cast<std::uint8_t>(node >> 8 * byte);
        hello.kernel = static_cast<std::uint64_t>(node) + 1;
        hello.cpu_set = static_cast<std::uint64_t>(topology_.local(rank)) + 1;
        return hello;
    }

    double travel(int from, int to, std::uint64_t bytes) {
        const int source = topology_.node(from), destination = topology_.node(to);
        if (source == destination) return model_.inside.time(static_cast<double>(bytes));
        report_.traffic[size_of(source)].sent += bytes;
        report_.traffic[size_of(destination)].received += bytes;
        return model_.between.time(static_cast<double>(bytes));
    }

    /// Collects the cards of `rank` and of the ranks below it in the tree, which are those before rank + span.
    Collected collect(int rank, int span) {
        Collected here{wire::cards_of({hello(rank)}, wire::Nodes::by_id)};
        for (int bit = 1; bit < span && rank + bit < topology_.ranks(); bit *= 2) {
            const int child = rank + bit;
            const Collected theirs = collect(child, bit);
            const std::uint64_t bytes = wire::encode(theirs.cards).size();
            const double arrival = theirs.seconds + travel(child, rank, bytes);
            here.seconds = std::max(here.seconds, arrival) + model_.copy.time(static_cast<double>(bytes));
            here.depth = std::max(here.depth, theirs.depth + 1);
            here.cards = wire::merge(here.cards, theirs.cards, wire::Nodes::by_id).value();
        }
        return here;
    }

    /// Hands down all cards, to the largest part of the tree first. A rank's messages leave one after the other.
    void hand_down(int rank, int span, double now, int depth) {
        report_.cards_seconds = std::max(report_.cards_seconds, now);
        report_.rounds = std::max(report_.rounds, depth);
        if (topology_.local(rank) == 0) has_cards_[size_of(topology_.node(rank))] = now;
        for (int bit = span / 2; bit >= 1; bit /= 2) {
            if (rank + bit >= topology_.ranks()) continue;
            const double there = now + travel(rank, rank + bit, report_.card_bytes);
            hand_down(rank + bit, bit, there, depth + 1);
            const bool inside = topology_.same_node(rank, rank + bit);
            now += (inside ? model_.inside : model_.between).beta * static_cast<double>(report_.card_bytes);
        }
    }

    void note_memory(const NodeCards& cards) {
        const std::uint64_t lists = 3 * sizeof(std::int32_t) * size_of(topology_.ranks());
        // The ranks on the cards, the node of each rank, and the same again while the topology is made.
        report_.bytes_while_starting =
            report_.card_bytes + cards.size() * sizeof(wire::NodeCard) + lists + topology_.bytes_kept();
        report_.lasting_bytes = topology_.bytes_kept();
    }

    static int parent_of(int node) { return node & (node - 1); }

    template <class Visit>
    void each_child(int node, Visit visit) const {
        for (int bit = 1; node + bit < topology_.nodes() && (node & bit) == 0; bit *= 2) visit(node + bit);
    }

    double between_leaders(int from, int to, std::uint64_t bytes) {
        return travel(topology_.members(from).front(), topology_.members(to).front(), bytes);
    }

    /// A node answers the nodes below it in their order, then looks at its own answer; the job secret goes down, the counts come up.
    void make_handshakes() {
        const int nodes = topology_.nodes();
        std::vector<double> answered(size_of(nodes)), secret(size_of(nodes)), counted(size_of(nodes));
        std::vector<int> depth(size_of(nodes));
        for (int node = 0; node < nodes; ++node) {
            double busy = has_cards_[size_of(node)] + (node > 0 ? initiating * handshake_ : 0);
            each_child(node, [&](int child) {
                const double arrival = has_cards_[size_of(child)] + initiating * handshake_ +
                                       between_leaders(child, node, initiation_bytes);
                busy = std::max(busy, arrival) + answering * handshake_;
                answered[size_of(child)] = busy + between_leaders(node, child, answer_bytes);
            });
            if (node > 0) {
                busy = std::max(busy, answered[size_of(node)]) + finishing * handshake_;
                secret[size_of(node)] = std::max(busy, secret[size_of(node)]);
                depth[size_of(node)] = depth[size_of(parent_of(node))] + 1;
            } else {
                secret[0] = busy;
            }
            each_child(node, [&](int child) {
                secret[size_of(child)] = secret[size_of(node)] + between_leaders(node, child, secret_bytes);
            });
        }
        for (int node = nodes - 1; node >= 0; --node) {
            counted[size_of(node)] = std::max(counted[size_of(node)], secret[size_of(node)]);
            if (node == 0) continue;
            double& above = counted[size_of(parent_of(node))];
            above =
                std::max(above, counted[size_of(node)] + between_leaders(node, parent_of(node), count_bytes));
        }
        report_.seconds = std::max(counted[0], report_.cards_seconds);
        const int deepest = *std::ranges::max_element(depth);
        if (nodes > 1) report_.rounds += 2 + 2 * deepest;
    }

    const Topology& topology_;
    const ClusterModel& model_;
    const double handshake_;
    std::vector<double> has_cards_;  ///< when the leader of each node has all cards
    StartupReport report_;
};

}  // namespace

StartupReport simulate_startup(const Topology& topology, const ClusterModel& model,
                               double handshake_seconds) {
    return Startup(topology, model, handshake_seconds).run();
}

double time_of_handshake() {
    using keys::noise::HandshakeState, keys::noise::Role;
    using Clock = std::chrono::steady_clock;
    const keys::Secret key = keys::Secret::random();
    const std::string prologue = "mpisec sim startup";
    std::vector<double> seconds;
    for (int i = 0; i < 21; ++i) {
        const auto begun = Clock::now();
        HandshakeState child(Role::initiator, keys::as_bytes(prologue), key);
        HandshakeState parent(Role::responder, keys::as_bytes(prologue), key);
        const auto first = child.write_message({});
        if (!first || !parent.read_message(*first)) continue;
        const auto second = parent.write_message({});
        if (!second || !child.read_message(*second) || !child.split() || !parent.split()) continue;
        seconds.push_back(std::chrono::duration<double>(Clock::now() - begun).count());
    }
    if (seconds.empty()) return 0;
    std::ranges::nth_element(seconds, seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2));
    return seconds[seconds.size() / 2];
}

}  // namespace mpisec::cli
