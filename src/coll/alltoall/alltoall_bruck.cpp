// Bruck's exchange between nodes: data for the node that is `way` nodes further on travels in steps, the powers of two
// whose sum is `way`, and all data that makes the same step goes in one sealed block. A lane is one rank of each
// node, which carries for itself and, in nodes larger than the smallest, for ranks that are not in a lane.
#include "coll/alltoall/alltoall_buffers.hpp"
#include "coll/alltoall/alltoall_nodes.hpp"
#include "coll/patterns/nodes.hpp"

namespace mpisec::coll {
namespace {

class BruckLane {
  public:
    BruckLane(fabric::Fabric& fabric, std::size_t block) : fabric_(fabric), block_(block) {}

    fabric::Task run(const Departures& departures, const Arrivals& arrivals) {
        for (int way = 0; way < topology_.nodes(); ++way) {
            held_.emplace_back();
            for (int rank : ranks(fabric_.node()))
                held_.back().push_back(
                    departures.run(node_after(topology_, fabric_.node(), way), topology_.local(rank)));
        }
        std::uint64_t round = 0;
        for (int step = 1; step < topology_.nodes(); step *= 2) co_await travel(step, round++);
        for (int way = 1; way < topology_.nodes(); ++way) deliver(way, arrivals);
    }

  private:
    /// The ranks on a node for which this lane carries.
    std::vector<int> ranks(int node) const {
        std::vector<int> ranks;
        for (int local = fabric_.local(); local < topology_.node_size(node);
             local += topology_.smallest_node())
            ranks.push_back(topology_.members(node)[static_cast<std::size_t>(local)]);
        return ranks;
    }
    /// Bytes that began on node `origin` and have that way to go in all.
    std::size_t bytes(int origin, int way) const {
        const int to = node_after(topology_, origin, way);
        return ranks(origin).size() * static_cast<std::size_t>(topology_.node_size(to)) * block_;
    }
    /// The node on which the data with this way began that arrives at `node` in this step.
    int origin(int node, int way, int step) const {
        return node_after(topology_, node, -(way & (2 * step - 1)));
    }

    fabric::Task travel(int step, std::uint64_t round) {
        const int here = fabric_.node();
        const int to = peer_on(topology_, fabric_.rank(), node_after(topology_, here, step));
        const int from = peer_on(topology_, fabric_.rank(), node_after(topology_, here, -step));
        std::size_t in_bytes = 0;
        for (int way = step; way < topology_.nodes(); ++way)
            if (way & step) in_bytes += bytes(origin(here, way, step), way);
        const fabric::CiphertextBuffer in_sealed_block = fabric_.ciphertext(fabric::sealed_bytes(in_bytes));
        auto receiving = fabric_.receive(from, in_sealed_block);
        const fabric::PlaintextBuffer out = pack(step);
        const fabric::CiphertextBuffer out_sealed_block =
            fabric_.ciphertext(fabric::sealed_bytes(out.size()));
        fabric_.seal(out_sealed_block, out, {fabric_.rank(), round});
        auto sending = fabric_.send(to, out_sealed_block);
        co_await receiving;
        const fabric::PlaintextBuffer in = fabric_.plaintext(in_bytes);
        fabric_.open(in, in_sealed_block, {from, round});
        std::size_t at = 0;
        for (int way = step; way < topology_.nodes(); ++way)
            if (way & step) {
                const std::size_t size = bytes(origin(here, way, step), way);
                held_[static_cast<std::size_t>(way)] = {in.subspan(at, size)};
                at += size;
            }
        co_await sending;
    }

    /// Packs all data that makes this step.
    fabric::PlaintextBuffer pack(int step) {
        std::size_t total = 0, at = 0;
        auto visit = [&](auto&& part) {
            for (int way = step; way < topology_.nodes(); ++way)
                for (fabric::Plaintext piece : held_[static_cast<std::size_t>(way)])
                    if (way & step) part(piece);
        };
        visit([&](fabric::Plaintext piece) { total += piece.size(); });
        const fabric::PlaintextBuffer packed = fabric_.plaintext(total);
        visit([&](fabric::Plaintext piece) {
            fabric_.copy(packed.subspan(at, piece.size()), piece);
            at += piece.size();
        });
        return packed;
    }

    /// Copies the data that has come all its way to this node to where its receivers take it.
    void deliver(int way, const Arrivals& arrivals) {
        fabric::Plaintext rest = held_[static_cast<std::size_t>(way)].front();
        for (int source : ranks(node_after(topology_, fabric_.node(), -way))) {
            const fabric::PlaintextBuffer row = arrivals.row(source);
            fabric_.copy(row, rest.first(row.size()));
            rest = rest.subspan(row.size());
        }
    }

    fabric::Fabric& fabric_;
    const fabric::Topology& topology_ = fabric_.topology();
    const std::size_t block_;
    /// By way, the data that is here: runs in the order of source, destination.
    std::vector<std::vector<fabric::PlaintextBuffer>> held_;
};

}  // namespace

fabric::Task alltoall_bruck(fabric::Fabric& fabric, const Call& call) {
    const fabric::Topology& topology = fabric.topology();
    const int lanes = topology.smallest_node();
    Arrivals arrivals;
    Departures departures;
    co_await arrivals.make(fabric, call);
    co_await departures.make(fabric, call);
    arrivals.put(fabric, call);
    departures.put(fabric, call);
    if (static_cast<int>(fabric.node_peers().size()) > lanes) co_await fabric.node_barrier();
    BruckLane lane(fabric, agreed_bytes(Collective::alltoall, call).value_or(0));
    if (fabric.local() < lanes) co_await lane.run(departures, arrivals);
    co_await fabric.node_barrier();
    arrivals.take(fabric, call);
}

}  // namespace mpisec::coll
