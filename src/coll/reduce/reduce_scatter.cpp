// Reduce-scatter. N = 2^k nodes of l ranks, m bytes in all, the busiest rank; bytes are those opened.
//
//                                                                  rounds  bytes          seals  opens
//   recursive-doubling  all-reduce over all ranks                  lg p    m lg N         lg N   lg N
//   allreduce           all-reduce "smp": fewest rounds            lg N    m lg N         lg N   lg N
//   smp                 shared memory; each reduces for its likes  N-1     m/l (N-1)/N    N-1    N-1
#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "coll/entries.hpp"
#include "coll/patterns/nodes.hpp"
#include "coll/patterns/schedule.hpp"
#include "coll/reduce/node_reduction.hpp"

namespace mpisec::coll {
namespace {

using fabric::Fabric;
using fabric::PlaintextBuffer;
using fabric::Task;

/// Every rank reduces everything, by an all-reduce: the rank's own part is then in its place.
Task reduce_scatter_recursive_doubling(Fabric& fabric, const Call& call) {
    return find_algorithm(Collective::allreduce, "recursive-doubling")->run(fabric, call);
}

/// The same, node by node.
Task allreduce(Fabric& fabric, const Call& call) {
    return find_algorithm(Collective::allreduce, "smp")->run(fabric, call);
}

/// Of one chunk: each rank's part of the vector, where it lies in the data and where in what a rank shares,
/// and which rank of each node takes care of it: the one with the same place, so that ranks send to ranks of the same
/// place.
class Parts {
  public:
    Parts(const fabric::Topology& topology, const Call& call, int chunks, int chunk)
        : topology_(topology), call_(call), chunks_(chunks), chunk_(chunk), each_(call.from.each()) {
        if (each_) {
            bytes_ = of_part(*each_).size * call.from.size.size();
            return;
        }
        std::size_t at = 0;
        for (std::size_t size : call.from.size) {
            places_.push_back({at, bytes_});
            at += size;
            bytes_ += of_part(size).size;
        }
    }
    Range in_data(int rank) const {
        const Range now = of_part(size(rank));
        const std::size_t before = each_ ? *each_ * static_cast<std::size_t>(rank) : place(rank).in_data;
        return {before + now.offset, now.size};
    }
    Range in_shared(int rank) const {
        const Range now = of_part(size(rank));
        return {each_ ? now.size * static_cast<std::size_t>(rank) : place(rank).in_shared, now.size};
    }
    std::size_t bytes() const { return bytes_; }
    int carer(int node, int rank) const {
        return topology_.members(
            node)[static_cast<std::size_t>(topology_.local(rank) % topology_.node_size(node))];
    }

  private:
    struct Place {
        std::size_t in_data, in_shared;
    };
    const Place& place(int rank) const { return places_[static_cast<std::size_t>(rank)]; }
    std::size_t size(int rank) const { return call_.from.size[static_cast<std::size_t>(rank)]; }
    /// What the chunk has of a part.
    Range of_part(std::size_t size) const { return slice(size, call_.reduction->element, chunks_, chunk_); }

    const fabric::Topology& topology_;
    const Call& call_;
    const int chunks_, chunk_;
    const std::optional<std::size_t> each_;
    std::vector<Place> places_;  ///< by rank; empty where parts have one size
    std::size_t bytes_ = 0;
};

/// The vectors of the ranks of a node: the rank's own, and those of others in shared memory.
struct NodeVectors {
    Fabric& fabric;
    const Call& call;
    const Parts& parts;
    PlaintextBuffer shared;

    int node_peers() const { return static_cast<int>(fabric.node_peers().size()); }
    PlaintextBuffer part_of(int local, int rank) const {
        if (local == fabric.local()) return parts.in_data(rank).of(call.data);
        return vector_of(local, parts.in_shared(rank));
    }
    PlaintextBuffer vector_of(int local, Range range) const {
        return shared.subspan(static_cast<std::size_t>(local) * parts.bytes() + range.offset, range.size);
    }
    /// Puts into shared memory what other ranks reduce.
    void publish() const {
        for (int rank = 0; rank < fabric.topology().ranks(); ++rank) {
            const Range here = parts.in_shared(rank);
            if (here.size > 0 && parts.carer(fabric.node(), rank) != fabric.rank())
                fabric.copy(vector_of(fabric.local(), here), parts.in_data(rank).of(call.data));
        }
    }
    /// Reduces what the node has for this rank, into the place of one of the operands.
    PlaintextBuffer reduce(int rank) const {
        const std::vector<int> order =
            order_of_operands(call.reduction->commutes, node_peers(), fabric.local());
        const PlaintextBuffer into = part_of(order[0], rank);
        for (std::size_t k = 1; k < order.size(); ++k)
            fabric.combine(*call.reduction, into, part_of(order[k], rank));
        return into;
    }
};

/// One chunk: nodes send each other what they have for each other's ranks.
class PartsExchange {
  public:
    PartsExchange(Fabric& fabric, const Call& call, Edges& edges, int chunks, int chunk)
        : edges_(edges),
          fabric_(fabric),
          parts_(fabric.topology(), call, chunks, chunk),
          vectors_{fabric, call, parts_, {}} {}

    std::size_t shared_bytes() const { return parts_.bytes() * fabric_.node_peers().size(); }
    /// Runs until all is under way.
    Task begin(PlaintextBuffer shared) {
        vectors_.shared = shared;
        receive(result().size());
        if (vectors_.node_peers() > 1) {
            vectors_.publish();
            co_await fabric_.node_barrier();
        }
        send();
    }
    Task end() {
        if (!result().empty()) co_await combine(result());
        for (const auto& one : sending_) co_await edges_.finish(one);
        for (std::size_t node = 0; node < rooms_.size(); ++node)
            if (static_cast<int>(node) != fabric_.node()) fabric_.give_back(rooms_[node]);
    }

  private:
    void receive(std::size_t bytes) {
        for (int node = 0; node < fabric_.topology().nodes(); ++node) {
            const bool own = node == fabric_.node() || bytes == 0;
            rooms_.push_back(own ? PlaintextBuffer() : fabric_.plaintext(bytes));
            receiving_.push_back(receive_segments(edges_, parts_.carer(node, fabric_.rank()), rooms_.back(),
                                                  vectors_.call.reduction->element));
        }
    }
    /// To the next node first, so that all are received from alike.
    void send() {
        const fabric::Topology& topology = fabric_.topology();
        for (int k = 1; k < topology.nodes(); ++k)
            for (int to : topology.members(node_after(topology, fabric_.node(), k)))
                if (parts_.carer(fabric_.node(), to) == fabric_.rank() && parts_.in_data(to).size > 0)
                    for (auto& one :
                         send_segments(edges_, to, vectors_.reduce(to), vectors_.call.reduction->element))
                        sending_.push_back(one);
    }
    Task combine(PlaintextBuffer result) {
        const fabric::Reduction& reduction = *vectors_.call.reduction;
        const std::vector<int> order =
            order_of_operands(reduction.commutes, fabric_.topology().nodes(), fabric_.node());
        rooms_[static_cast<std::size_t>(fabric_.node())] = vectors_.reduce(fabric_.rank());
        const PlaintextBuffer into = rooms_[static_cast<std::size_t>(order[0])];
        for (int node : order) {
            const auto n = static_cast<std::size_t>(node);
            for (const auto& one : receiving_[n]) co_await edges_.finish(one);
            if (node != order[0]) fabric_.combine(reduction, into, rooms_[n]);
        }
        if (into.data() != result.data()) fabric_.copy(result, into);
    }

    PlaintextBuffer result() const { return parts_.in_data(fabric_.rank()).of(vectors_.call.data); }

    Edges& edges_;
    Fabric& fabric_;
    const Parts parts_;
    NodeVectors vectors_;
    std::vector<PlaintextBuffer> rooms_;                    ///< by node
    std::vector<std::vector<Edges::Receiving>> receiving_;  ///< by node
    std::vector<Edges::Sending> sending_;
};

/// One chunk is under way between nodes while the next one begins inside.
Task reduce_scatter_smp(Fabric& fabric, const Call& call) {
    const int all = chunks(fabric.topology(), call.data.size());
    const bool shares = fabric.node_peers().size() > 1;
    Edges edges(fabric);
    std::array<PlaintextBuffer, 2> shared;
    std::array<std::unique_ptr<PartsExchange>, 2> under_way;
    for (int chunk = 0; chunk <= all; ++chunk) {
        const auto now = static_cast<std::size_t>(chunk % 2);
        if (chunk < all) {
            under_way[now] = std::make_unique<PartsExchange>(fabric, call, edges, all, chunk);
            const std::size_t bytes = under_way[now]->shared_bytes();
            if (shares && chunk >= 2) co_await fabric.node_barrier();  // nobody uses chunk - 2 any more
            if (shares && shared[now].size() < bytes) shared[now] = fabric.shared_plaintext(bytes);
            co_await under_way[now]->begin(shared[now]);
        }
        if (chunk > 0) co_await under_way[1 - now]->end();
    }
}

}  // namespace

std::span<const Entry> reduce_scatter_algorithms() {
    static constexpr Entry all[] = {
        {"recursive-doubling", reduce_scatter_recursive_doubling, nullptr, "naive"},
        {"allreduce", allreduce, reduces_by_node},
        {"smp", reduce_scatter_smp, reduces_by_node, "node"}};
    return all;
}

}  // namespace mpisec::coll
