#include "fabric/sim/sim.hpp"

#include <algorithm>
#include <deque>
#include <iterator>
#include <map>
#include <memory>
#include <unordered_map>

#include "fabric/sim/events.hpp"
#include "fabric/sim/toy_sealed_block.hpp"

namespace mpisec::fabric::sim {
namespace {

struct Message {
    std::span<std::uint8_t> bytes;
    bool sealed = false, poisoned = false;
};

/// The operation that a fabric::Pending stands for.
struct Step {
    double at = 0;  ///< when it was started, then when it is done
    bool done = false;
    Message message;  ///< what is sent, or the room of a receive
    double busy = 0;  ///< of a send: how long it occupies the line
    std::coroutine_handle<> waiter;
};

class Cluster;

class SimFabric final : public Fabric {
  public:
    SimFabric(Cluster& cluster, int rank, const Topology& topology, bool few_parts)
        : Fabric(rank, topology, few_parts), cluster_(cluster) {}

    void copy(PlaintextBuffer to, Plaintext from) override;
    void combine(const Reduction& reduction, PlaintextBuffer inout, Plaintext in) override;
    PlaintextBuffer shared_numbers(std::size_t bytes) override;
    bool awaited_all() const { return steps_.size() == free_.size(); }

    double now = 0;
    Metrics metrics;
    std::size_t room_bytes = 0;
    std::uint64_t sends = 0, receives = 0, sent_bytes = 0, received_bytes = 0;
    std::size_t shared_rooms = 0;  ///< asked for so far

  protected:
    unsigned start_send(int to, std::span<std::uint8_t> bytes, bool sealed) override;
    unsigned start_receive(int from, std::span<std::uint8_t> room, bool sealed) override;
    unsigned start_barrier() override;
    bool finished(unsigned number) override { return steps_[number].done && steps_[number].at <= now; }
    void when_finished(unsigned number, std::coroutine_handle<> waiter) override;
    void finish(unsigned number) override {
        if (steps_[number].message.poisoned) fail();
        free_.push_back(number);
    }
    void do_seal(std::span<std::uint8_t> to, Plaintext from, SealedBlock sealed_block) override;
    void misused(SealedBlock sealed_block) override;
    bool do_open(PlaintextBuffer to, Plaintext from, SealedBlock sealed_block) override;
    std::span<std::uint8_t> room(std::size_t bytes) override;
    std::span<std::uint8_t> shared_room(std::size_t bytes) override;

  private:
    unsigned add(Message message) {
        if (free_.empty()) {
            free_.push_back(static_cast<unsigned>(steps_.size()));
            steps_.emplace_back();
        }
        const unsigned number = free_.back();
        free_.pop_back();
        steps_[number] = {now, false, message, 0, nullptr};
        return number;
    }
    double per_bytes(const Line& line, std::size_t n);
    void work(const Line& line, std::size_t n) { now += line.alpha + per_bytes(line, n); }

    double handled_ = 0;  ///< bytes, as ClusterModel::cache counts them
    Cluster& cluster_;
    std::deque<Step> steps_;  // a deque's elements stay where they are
    std::vector<unsigned> free_;
};

class Cluster {
  public:
    Cluster(const Topology& topology, const ClusterModel& model, const Options& options)
        : topology_(topology),
          model_(model),
          options_(options),
          events_(options.seed),
          nodes_(static_cast<std::size_t>(topology.nodes())),
          out_free_(static_cast<std::size_t>(topology.ranks() + topology.nodes())),
          in_free_(out_free_) {
        for (int rank = 0; rank < topology.ranks(); ++rank)
            ranks_.push_back(std::make_unique<SimFabric>(*this, rank, topology, options.few_parts));
    }

    Report run(const Program& program) {
        for (auto& rank : ranks_) tasks_.push_back(program(*rank));
        for (int rank = 0; rank < topology_.ranks(); ++rank)
            events_.schedule(0, rank, [this, rank] { tasks_[static_cast<std::size_t>(rank)].start(); });
        while (!events_.empty() && report_.error.empty()) events_.run_next();
        for (std::size_t r = 0; r < ranks_.size(); ++r) {
            SimFabric& rank = *ranks_[r];
            if (!tasks_[r].done()) complain("rank " + std::to_string(r) + " waits for ever");
            if (!rank.awaited_all())
                complain("rank " + std::to_string(r) + " does not await all that it started");
            rank.metrics.communication_rounds = std::max(rank.sends, rank.receives);
            rank.metrics.communicated_bytes = std::max(rank.sent_bytes, rank.received_bytes);
            report_.metrics.push_back(rank.metrics);
            report_.room_bytes.push_back(rank.room_bytes);
            report_.failed.push_back(rank.failed());
            report_.seconds = std::max(report_.seconds, rank.now);
        }
        if (std::any_of(lanes_.begin(), lanes_.end(),
                        [](const auto& lane) { return !lane.second.arrived.empty(); }))
            complain("a message is never received");
        return std::move(report_);
    }

    /// The first fault ends the run.
    void complain(const std::string& error) {
        if (report_.error.empty()) report_.error = error;
    }

    void send(SimFabric& from, int to, Step& send) {
        events_.schedule(from.now, from.rank(), [this, &from, to, &send] { put_on_line(from, to, send); });
    }
    void receive(SimFabric& to, int from, Step& receive) {
        events_.schedule(to.now, to.rank(), [this, &to, from, &receive] {
            const LaneName name = lane_name(from, to.rank());
            Lane& lane = lanes_[name];
            if (lane.arrived.empty()) return lane.waiting.push_back(&receive);
            deliver(to, receive, take_first(lane.arrived));
            if (lane.arrived.empty()) lanes_.erase(name);
        });
    }

    void come_to_barrier(SimFabric& rank, Step& waiting) {
        Node& node = nodes_[static_cast<std::size_t>(rank.node())];
        node.at_barrier.push_back({&rank, &waiting});
        if (node.at_barrier.size() < rank.node_peers().size()) return;
        double last = 0;
        bool failed = false;
        for (auto& [member, its] : node.at_barrier) {
            last = std::max(last, member->now);
            failed = failed || member->failed();
        }
        for (auto& [member, its] : std::exchange(node.at_barrier, {})) {
            its->message.poisoned = failed;
            complete(*member, *its, last + model_.barrier.value_or(model_.inside.alpha));
        }
    }

    void resume(SimFabric& owner, Step& step) {
        events_.schedule(std::max(step.at, owner.now), owner.rank(), [&owner, &step] {
            owner.now = std::max(owner.now, step.at);
            step.waiter.resume();
        });
    }

    /// `real`: real memory even when the simulation has no data.
    std::span<std::uint8_t> room(std::size_t bytes, bool real = false) {
        if (!options_.data && !real)
            return {std::exchange(unused_, unused_ + bytes + 1), bytes};  // no two rooms in the same place
        memory_.push_back(std::make_unique<std::uint8_t[]>(bytes));
        return {memory_.back().get(), bytes};
    }
    std::span<std::uint8_t> shared_room(SimFabric& rank, std::size_t bytes, bool real = false) {
        auto& [waiting, rooms, ends] = nodes_[static_cast<std::size_t>(rank.node())];
        const std::size_t number = rank.shared_rooms++;
        if (number == rooms.size()) {
            rooms.push_back(room(bytes, real));
            ends[rooms.back().data()] = rooms.back().data() + bytes;
        }
        if (rooms[number].size() != bytes)
            complain("ranks of a node ask for shared memory of different sizes");
        return rooms[number];
    }

    bool in_shared_room(const SimFabric& rank, Plaintext bytes) const {
        const auto& ends = nodes_[static_cast<std::size_t>(rank.node())].ends;
        const auto after = ends.upper_bound(bytes.data());
        return after != ends.begin() && bytes.data() < std::prev(after)->second;
    }

    const ClusterModel& model() const { return model_; }
    bool data() const { return options_.data; }

  private:
    struct Arrived {
        Message message;
        double at;
        double copying;  ///< inside a node: how long the receiver takes to fetch it, once it has asked for it
        std::vector<std::uint8_t> bytes;
    };
    /// Between two ranks, one way: messages that no receive has asked for, or receives that wait for a message; few of either.
    struct Lane {
        std::vector<Arrived> arrived;
        std::vector<Step*> waiting;
    };
    using LaneName = std::uint64_t;
    struct Node {
        std::vector<std::pair<SimFabric*, Step*>> at_barrier;
        std::vector<std::span<std::uint8_t>> rooms;
        std::map<const std::uint8_t*, const std::uint8_t*> ends;  ///< of rooms, by their beginnings
    };

    LaneName lane_name(int from, int to) const {
        return static_cast<LaneName>(from) * static_cast<LaneName>(topology_.ranks()) +
               static_cast<LaneName>(to);
    }
    template <class T>
    static T take_first(std::vector<T>& queue) {
        T first = std::move(queue.front());
        queue.erase(queue.begin());
        return first;
    }

    void complete(SimFabric& owner, Step& step, double at) {
        step.done = true;
        step.at = at;
        if (step.waiter) resume(owner, step);
    }

    /// Where a message leaves or arrives: the rank's own port, or its node's when its ranks share a link. A port carries one message at a
    /// time.
    std::size_t port(int rank, bool shared) const {
        return static_cast<std::size_t>(shared ? topology_.ranks() + topology_.node(rank) : rank);
    }

    void put_on_line(SimFabric& from, int to, Step& send) {
        const bool inside = topology_.same_node(from.rank(), to), shared = !inside && model_.shared_link;
        const Line& line = inside ? model_.inside : model_.between;
        double &out_free = out_free_[port(from.rank(), shared)], &in_free = in_free_[port(to, shared)];
        const double start = std::max(send.at, out_free);
        out_free = start + send.busy;
        if (!inside) in_free = std::max(start + line.alpha, in_free) + send.busy;

        auto arrived = std::make_shared<Arrived>(
            Arrived{send.message, inside ? start + line.alpha : in_free, inside ? send.busy : 0, {}});
        if (options_.data) arrived->bytes.assign(send.message.bytes.begin(), send.message.bytes.end());
        if (send.message.sealed && send.message.poisoned)
            std::fill(arrived->bytes.begin(), arrived->bytes.end(), std::uint8_t{0});
        if (!inside && ++report_.messages_between == options_.tamper && !arrived->bytes.empty())
            arrived->bytes[mix(options_.seed) % arrived->bytes.size()] ^= 1;
        send.message.poisoned = false;  // what a send brings home
        complete(from, send, start + send.busy);
        events_.schedule(arrived->at, from.rank(), [this, rank = from.rank(), to, arrived] {
            const LaneName name = lane_name(rank, to);
            Lane& lane = lanes_[name];
            if (lane.waiting.empty()) return lane.arrived.push_back(std::move(*arrived));
            deliver(*ranks_[static_cast<std::size_t>(to)], *take_first(lane.waiting), *arrived);
            if (lane.waiting.empty()) lanes_.erase(name);
        });
    }

    void deliver(SimFabric& to, Step& receive, const Arrived& arrived) {
        if (receive.message.bytes.size() != arrived.message.bytes.size() ||
            receive.message.sealed != arrived.message.sealed)
            return complain("rank " + std::to_string(to.rank()) + " is sent another message than it expects");
        std::copy(arrived.bytes.begin(), arrived.bytes.end(), receive.message.bytes.data());
        // For a sealed one, opening tells.
        receive.message.poisoned = arrived.message.poisoned && !arrived.message.sealed;
        double at = std::max(arrived.at, receive.at);
        if (arrived.copying > 0) {
            double& in_free = in_free_[port(to.rank(), false)];
            at = in_free = std::max(at, in_free) + arrived.copying;
        }
        complete(to, receive, at);
    }

    const Topology& topology_;
    const ClusterModel& model_;
    const Options& options_;
    Events events_;
    std::vector<std::unique_ptr<SimFabric>> ranks_;
    std::vector<Node> nodes_;
    std::vector<double> out_free_, in_free_;    ///< by port(): until when it is busy
    std::unordered_map<LaneName, Lane> lanes_;  ///< those where a receive or a message waits
    std::vector<std::unique_ptr<std::uint8_t[]>> memory_;
    std::uint8_t* unused_ = untouchable() + (std::size_t{1} << 60);
    Report report_;
    std::vector<Task> tasks_;  // last, so that what they use outlives them
};

/// The part of an operation's cost that depends on its n bytes.
double SimFabric::per_bytes(const Line& line, std::size_t n) {
    const double bytes = static_cast<double>(n);
    const double near = std::clamp(cluster_.model().cache - handled_, 0.0, bytes);
    handled_ += bytes;
    return line.beta * near + line.beyond.value_or(line.beta) * (bytes - near);
}

void SimFabric::copy(PlaintextBuffer to, Plaintext from) {
    if (to.size() != from.size()) return cluster_.complain("a copy between buffers of different sizes");
    const ClusterModel& model = cluster_.model();
    const bool shared = cluster_.in_shared_room(*this, from) || cluster_.in_shared_room(*this, to);
    work(shared ? model.shared.value_or(model.copy) : model.copy, from.size());
    if (cluster_.data()) std::copy(from.begin(), from.end(), to.begin());
}

void SimFabric::combine(const Reduction& reduction, PlaintextBuffer inout, Plaintext in) {
    if (inout.size() != in.size() || in.size() % reduction.element != 0)
        return cluster_.complain("vectors of different sizes, or of parts of elements, are combined");
    work(cluster_.model().reduce, in.size());
    if (cluster_.data() && !reduction.combine(inout, in)) fail();
}

unsigned SimFabric::start_send(int to, std::span<std::uint8_t> bytes, bool sealed) {
    if (!sealed && !topology_.same_node(rank_, to))
        cluster_.complain("rank " + std::to_string(rank_) + " sends plaintext to another node");
    ++sends;
    sent_bytes += bytes.size();
    const unsigned number = add({bytes, sealed, failed_});
    const ClusterModel& model = cluster_.model();
    steps_[number].busy = topology_.same_node(rank_, to)
                              ? per_bytes(model.inside, bytes.size())
                              : model.between.beta * static_cast<double>(bytes.size());
    cluster_.send(*this, to, steps_[number]);
    return number;
}

unsigned SimFabric::start_receive(int from, std::span<std::uint8_t> room, bool sealed) {
    ++receives;
    received_bytes += room.size();
    const unsigned number = add({room, sealed, false});
    cluster_.receive(*this, from, steps_[number]);
    return number;
}

unsigned SimFabric::start_barrier() {
    const unsigned number = add({});
    cluster_.come_to_barrier(*this, steps_[number]);
    return number;
}

void SimFabric::when_finished(unsigned number, std::coroutine_handle<> waiter) {
    steps_[number].waiter = waiter;
    if (steps_[number].done) cluster_.resume(*this, steps_[number]);
}

void SimFabric::do_seal(std::span<std::uint8_t> to, Plaintext from, SealedBlock sealed_block) {
    if (to.size() != sealed_bytes(from.size()))
        return cluster_.complain("a sealed block of the wrong size is sealed");
    if (sealed_block.index >> 32 != 0)
        return cluster_.complain("rank " + std::to_string(rank_) +
                                 " needs more sealed blocks than a nonce can number");
    ++metrics.seals;
    metrics.sealed_bytes += from.size();
    work(cluster_.model().seal, from.size());
    if (cluster_.data()) toy_seal(to, from, sealed_block);
}

void SimFabric::misused(SealedBlock sealed_block) {
    const std::string who = "rank " + std::to_string(rank_) + " seals ";
    cluster_.complain(sealed_block.sealer != rank_
                          ? who + "in the name of rank " + std::to_string(sealed_block.sealer)
                          : who + "sealed block " + std::to_string(sealed_block.index) + " twice");
}

bool SimFabric::do_open(PlaintextBuffer to, Plaintext from, SealedBlock sealed_block) {
    if (from.size() != sealed_bytes(to.size())) {
        cluster_.complain("a sealed block of the wrong size is opened");
        return false;
    }
    ++metrics.opens;
    metrics.opened_bytes += to.size();
    work(cluster_.model().open, to.size());
    return !cluster_.data() || toy_open(to, from, sealed_block);
}

std::span<std::uint8_t> SimFabric::room(std::size_t bytes) {
    room_bytes += bytes;
    return cluster_.room(bytes);
}
std::span<std::uint8_t> SimFabric::shared_room(std::size_t bytes) {
    return cluster_.shared_room(*this, bytes);
}
PlaintextBuffer SimFabric::shared_numbers(std::size_t bytes) {
    return cluster_.shared_room(*this, bytes, true);
}

}  // namespace

Metrics Report::worst() const {
    Metrics most;
    for (const Metrics& one : metrics) {
        most.communication_rounds = std::max(most.communication_rounds, one.communication_rounds);
        most.communicated_bytes = std::max(most.communicated_bytes, one.communicated_bytes);
        most.seals = std::max(most.seals, one.seals);
        most.sealed_bytes = std::max(most.sealed_bytes, one.sealed_bytes);
        most.opens = std::max(most.opens, one.opens);
        most.opened_bytes = std::max(most.opened_bytes, one.opened_bytes);
    }
    return most;
}

Report run(const Topology& topology, const ClusterModel& model, const Program& program,
           const Options& options) {
    return Cluster(topology, model, options).run(program);
}

std::uint8_t* untouchable() {
    return reinterpret_cast<std::uint8_t*>(std::uintptr_t{1} << 61);
}

}  // namespace mpisec::fabric::sim
