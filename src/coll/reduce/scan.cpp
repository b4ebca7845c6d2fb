// Scan and exscan. N = 2^k nodes of l ranks, m bytes, the busiest rank; bytes are those opened.
//
//                                                                        rounds  bytes     seals  opens
//   recursive-doubling  over all ranks: twice the distance each round    lg p    m lg p    lg p   lg p
//   smp                 prefixes in shared memory; then leaders'         lg N    m lg N    lg N   lg N
//   multi-leader        the same, each rank with a slice of all vectors  lg N    m/l lg N  lg N   lg N
#include "coll/entries.hpp"
#include "coll/patterns/chunks.hpp"
#include "coll/patterns/schedule.hpp"

namespace mpisec::coll {
namespace {

using fabric::Fabric;
using fabric::PlaintextBuffer;
using fabric::Task;

Task scan_recursive_doubling(Fabric& fabric, const Call& call) {
    Edges edges(fabric);
    Partial mine = partial(fabric, *call.reduction, call.data);
    co_await Reducing(edges, mine, prefixes(Members::everybody(fabric), call.data.size())).finish();
}

/// Exclusive prefixes, into `before`; the first member's is not written. Follows the schedule of inclusive prefixes, but
/// combines what arrives into two places. `mine` has anything afterwards.
Task exclusive_prefixes(Edges& edges, Members members, Partial& mine, PlaintextBuffer before) {
    const Schedule steps = prefixes(members, mine.value.size());
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const Step& step = steps[i];
        const bool first = i == 0, sends_again = i + 1 < steps.size() && steps[i + 1].out.size > 0;
        const PlaintextBuffer in = first ? before : mine.spare;
        const Exchange exchange{step.to, step.out.of(mine.value), step.from, step.in.of(in)};
        Passing passing(edges, exchange, mine.reduction->element);
        co_await passing.finish([&](Range part) {
            if (!first) mine.fabric->combine(*mine.reduction, part.of(before), part.of(in));
            if (sends_again) mine.fabric->combine(*mine.reduction, part.of(mine.value), part.of(in));
        });
    }
}

Task exscan_recursive_doubling(Fabric& fabric, const Call& call) {
    Edges edges(fabric);
    Partial mine = partial(fabric, *call.reduction, call.data);
    const PlaintextBuffer before = fabric.plaintext(call.data.size());
    co_await exclusive_prefixes(edges, Members::everybody(fabric), mine, before);
    if (fabric.rank() > 0) fabric.copy(call.data, before);
}

/// In one chunk, what the ranks of a node share: their vectors, which become their prefixes within the node,
/// and in front of them what all lower nodes have.
struct NodePrefixes {
    PlaintextBuffer vectors;
    std::size_t bytes;

    PlaintextBuffer before() const { return vectors.first(bytes); }
    PlaintextBuffer of(int local) const {
        return vectors.subspan(static_cast<std::size_t>(local + 1) * bytes, bytes);
    }
};

struct Scan {
    Fabric& fabric;
    const fabric::Reduction& reduction;
    int parts;   ///< of the node's vectors, each reduced by one of its ranks
    int slices;  ///< of what the node has, each carried between nodes by one of its ranks
    bool inclusive;
    Edges edges;

    int node_peers() const { return static_cast<int>(fabric.node_peers().size()); }
    Range cut(std::size_t bytes, int pieces) const {
        return slice(bytes, reduction.element, pieces, fabric.local());
    }

    void inside_node(const NodePrefixes& node) const {
        const Range own = cut(node.bytes, parts);
        for (int node_peer = 1; node_peer < node_peers() && own.size > 0; ++node_peer)
            fabric.combine(reduction, own.of(node.of(node_peer)), own.of(node.of(node_peer - 1)));
    }

    Task between_nodes(const NodePrefixes& node) {
        const Range own = cut(node.bytes, slices);
        Partial nodes = partial(fabric, reduction, fabric.plaintext(own.size));
        const bool sends = fabric.node() + 1 < fabric.topology().nodes();
        if (sends && own.size > 0) fabric.copy(nodes.value, own.of(node.of(node_peers() - 1)));
        co_await exclusive_prefixes(edges, Members::across_nodes(fabric, fabric.local()), nodes,
                                    own.of(node.before()));
        fabric.give_back(nodes.value);
        fabric.give_back(nodes.spare);
    }

    void finish(const NodePrefixes& node, PlaintextBuffer data) const {
        const bool first_node = fabric.node() == 0;
        const int last = inclusive ? fabric.local() : fabric.local() - 1;  // of the node, for this rank
        if (last >= 0) fabric.copy(data, node.of(last));
        if (first_node) return;
        if (last >= 0)
            fabric.combine(reduction, data, node.before());
        else
            fabric.copy(data, node.before());
    }

    Task chunk(PlaintextBuffer data, PlaintextBuffer shared) {
        const NodePrefixes node{shared, data.size()};
        fabric.copy(node.of(fabric.local()), data);
        co_await fabric.node_barrier();
        if (fabric.local() < parts) inside_node(node);
        if (parts != slices) co_await fabric.node_barrier();
        if (fabric.local() < slices) co_await between_nodes(node);
        co_await fabric.node_barrier();
        finish(node, data);
    }
};

Task in_nodes(Scan scan, PlaintextBuffer data) {
    Fabric& fabric = scan.fabric;
    const std::size_t element = scan.reduction.element;
    const int all = chunks(fabric.topology(), data.size());
    if (all == 0) co_return;
    const std::size_t most = largest_slice(data.size(), element, all);
    const PlaintextBuffer shared = fabric.shared_plaintext(most * (fabric.node_peers().size() + 1));
    for (int chunk = 0; chunk < all; ++chunk) {
        if (chunk > 0) co_await fabric.node_barrier();  // nobody reads the last chunk's prefixes any more
        co_await scan.chunk(slice(data.size(), element, all, chunk).of(data), shared);
    }
}

template <bool inclusive>
Task scan_smp(Fabric& fabric, const Call& call) {
    return in_nodes({fabric, *call.reduction, 1, 1, inclusive, Edges(fabric)}, call.data);
}
template <bool inclusive>
Task slices(Fabric& fabric, const Call& call) {
    const int node_peers = static_cast<int>(fabric.node_peers().size()),
              smallest = fabric.topology().smallest_node();
    return in_nodes({fabric, *call.reduction, node_peers, smallest, inclusive, Edges(fabric)}, call.data);
}

bool suits(const fabric::Topology& topology, const Call&) {
    return topology.in_rank_order();
}

}  // namespace

std::span<const Entry> scan_algorithms() {
    static constexpr Entry all[] = {{"recursive-doubling", scan_recursive_doubling, nullptr, "naive"},
                                    {"smp", scan_smp<true>, suits, "node"},
                                    {"multi-leader", slices<true>, suits, "slices"}};
    return all;
}

std::span<const Entry> exscan_algorithms() {
    static constexpr Entry all[] = {{"recursive-doubling", exscan_recursive_doubling, nullptr, "naive"},
                                    {"smp", scan_smp<false>, suits, "node"},
                                    {"multi-leader", slices<false>, suits, "slices"}};
    return all;
}

}  // namespace mpisec::coll
