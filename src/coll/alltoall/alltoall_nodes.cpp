#include "coll/alltoall/alltoall_nodes.hpp"

#include "coll/alltoall/alltoall_buffers.hpp"
#include "coll/patterns/nodes.hpp"
#include "coll/patterns/rounds.hpp"

namespace mpisec::coll {
fabric::Task alltoall_node(fabric::Fabric& fabric, const Call& call) {
    const fabric::Topology& topology = fabric.topology();
    const bool alone = fabric.node_peers().size() == 1;
    Arrivals arrivals;
    if (!alone) {
        co_await arrivals.make(fabric, call);
        arrivals.put(fabric, call);
    }
    co_await in_rounds(fabric, topology.nodes() - 1, [&](int i) {
        const int to = node_after(topology, fabric.node(), i + 1),
                  from = node_after(topology, fabric.node(), -i - 1);
        Round round;
        round.out.push_back({peer_on(topology, fabric.rank(), to), call.to.pack(fabric, topology.members(to)),
                             static_cast<std::uint64_t>(to)});
        for (int source : topology.members(from))
            if (peer_on(topology, source, fabric.node()) == fabric.rank())
                round.in.push_back({source, alone ? call.from.of(source) : arrivals.row(source),
                                    static_cast<std::uint64_t>(fabric.node())});
        return round;
    });
    if (alone) co_return;
    co_await fabric.node_barrier();
    arrivals.take(fabric, call);
}

fabric::Task alltoall_pairs(fabric::Fabric& fabric, const Call& call) {
    const fabric::Topology& topology = fabric.topology();
    Arrivals arrivals;
    Departures departures;
    co_await arrivals.make(fabric, call);
    co_await departures.make(fabric, call);
    arrivals.put(fabric, call);
    departures.put(fabric, call);
    co_await fabric.node_barrier();

    Round round;
    for (int distance = 1; distance < topology.nodes(); ++distance) {
        const int here = fabric.node(), to = node_after(topology, here, distance),
                  from = node_after(topology, here, -distance);
        if (clerk(topology, here, to) == fabric.rank())
            round.out.push_back(
                {clerk(topology, to, here), departures.for_node(to), static_cast<std::uint64_t>(to)});
        if (clerk(topology, here, from) == fabric.rank())
            round.in.push_back({clerk(topology, from, here), arrivals.of_node(topology, from),
                                static_cast<std::uint64_t>(here)});
    }
    co_await in_rounds(fabric, 1, [&](int) { return round; });
    co_await fabric.node_barrier();
    arrivals.take(fabric, call);
}

}  // namespace mpisec::coll
