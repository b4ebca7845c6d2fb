// Exchange with neighbours in a graph: all edges have their own blocks (neighbor_alltoall), or a rank has one
// for all that it leads to (neighbor_allgather). Of the d edges that leave a rank, and as many that enter it,
// x cross nodes. All take one round.
//
//   linear  every edge a message, a sealed block if it crosses nodes. Messages d, seals and opens x
//   once    neighbor_allgather: a rank seals once, and all its neighbours are sent the same sealed block.
//           Messages d, 1 seal, opens x
//   smp     one sealed block from node to node for all edges between them, both sides through shared memory;
//           a block of neighbor_allgather is in it once. The ranks of a node first tell each other their
//           edges. Messages, seals, opens: one per other node that the node has an edge with, shared out
//           among its ranks
#include "coll/entries.hpp"
#include "coll/neighbor/neighbor_links.hpp"
#include "coll/patterns/edges.hpp"
#include "coll/patterns/nodes.hpp"
#include "coll/patterns/rounds.hpp"

namespace mpisec::coll {
namespace {

using fabric::Fabric;
using fabric::PlaintextBuffer;
using fabric::Task;

template <class BlockTo>
Task along_edges(Fabric& fabric, const Call& call, BlockTo block_to) {
    Edges edges(fabric);
    std::vector<Edges::Receiving> receiving;
    for (std::size_t i = 0; i < call.sources.size(); ++i)
        receiving.push_back(edges.receive(call.sources[i], call.from.of(static_cast<int>(i))));
    std::vector<fabric::Pending> sending;
    for (std::size_t i = 0; i < call.destinations.size(); ++i)
        sending.push_back(edges.send(call.destinations[i], block_to(i)));
    for (auto& one : receiving) co_await edges.finish(one);
    for (auto& one : sending) co_await one;
}

Task linear_allgather(Fabric& fabric, const Call& call) {
    return along_edges(fabric, call, [&call](std::size_t) { return call.data; });
}
Task linear_alltoall(Fabric& fabric, const Call& call) {
    return along_edges(fabric, call, [&call](std::size_t i) { return call.to.of(static_cast<int>(i)); });
}

Task once(Fabric& fabric, const Call& call) {
    auto inside = [&](int peer) { return fabric.topology().same_node(peer, fabric.rank()); };
    std::vector<fabric::Pending> receiving, sending;
    std::vector<fabric::CiphertextBuffer> sealed_blocks;  // empty inside the node
    for (std::size_t i = 0; i < call.sources.size(); ++i) {
        const int from = call.sources[i];
        const PlaintextBuffer room = call.from.of(static_cast<int>(i));
        sealed_blocks.push_back(inside(from) ? fabric::CiphertextBuffer()
                                             : fabric.ciphertext(fabric::sealed_bytes(room.size())));
        receiving.push_back(inside(from) ? fabric.receive_here(from, room)
                                         : fabric.receive(from, sealed_blocks.back()));
    }
    fabric::CiphertextBuffer mine;  // sealed when the first neighbour needs it
    for (int to : call.destinations) {
        if (!inside(to) && mine.size() == 0) {
            mine = fabric.ciphertext(fabric::sealed_bytes(call.data.size()));
            fabric.seal(mine, call.data, {fabric.rank(), 0});
        }
        sending.push_back(inside(to) ? fabric.send_here(to, call.data) : fabric.send(to, mine));
    }
    for (std::size_t i = 0; i < receiving.size(); ++i) {
        co_await receiving[i];
        if (sealed_blocks[i].size() > 0)
            fabric.open(call.from.of(static_cast<int>(i)), sealed_blocks[i], {call.sources[i], 0});
    }
    for (auto& one : sending) co_await one;
}

/// A node's blocks in its shared memory: what comes, or stays, and what goes to other nodes.
struct Rooms {
    PlaintextBuffer in, out;
    std::size_t stays;

    PlaintextBuffer leaving(std::size_t offset, std::size_t bytes) const {
        return offset < stays ? in.subspan(offset, bytes) : out.subspan(offset - stays, bytes);
    }
};

/// Calls visit(node, offset, bytes) for each other node that `links` has edges with.
template <class Visit>
void for_each_node(const fabric::Topology& topology, const std::vector<Link>& links, int Link::*here,
                   int Link::*other, Visit visit) {
    for (std::size_t i = 0; i < links.size();) {
        const int node = topology.node(links[i].*other);
        const std::size_t begin = links[i].offset;
        std::size_t end = begin;
        const bool inside = topology.same_node(links[i].*here, links[i].*other);
        for (; i < links.size() && topology.node(links[i].*other) == node; ++i)
            end = links[i].offset + links[i].bytes;
        if (!inside) visit(node, begin, end - begin);
    }
}

/// This rank's share of the sealed blocks.
Round sealed_blocks(const Fabric& fabric, const Links& links, const Rooms& rooms) {
    const fabric::Topology& topology = fabric.topology();
    const int here = fabric.node();
    Round round;
    for_each_node(topology, links.out, &Link::from, &Link::to,
                  [&](int node, std::size_t offset, std::size_t bytes) {
                      if (clerk(topology, here, node) == fabric.rank())
                          round.out.push_back({clerk(topology, node, here), rooms.leaving(offset, bytes),
                                               static_cast<std::uint64_t>(node)});
                  });
    for_each_node(topology, links.in, &Link::to, &Link::from,
                  [&](int node, std::size_t offset, std::size_t bytes) {
                      if (clerk(topology, here, node) == fabric.rank())
                          round.in.push_back({clerk(topology, node, here), rooms.in.subspan(offset, bytes),
                                              static_cast<std::uint64_t>(here)});
                  });
    return round;
}

template <bool one_block>
Task neighbor_smp(Fabric& fabric, const Call& call) {
    Links links;
    co_await make_links(fabric, call, one_block, links);
    Rooms rooms;
    rooms.in = fabric.shared_plaintext(links.in_bytes);
    rooms.out = fabric.shared_plaintext(links.out_bytes - links.inside_bytes);
    rooms.stays = links.inside_bytes;
    const Link* last = nullptr;
    for (const Link& link : links.out) {
        if (link.from != fabric.rank()) continue;
        const bool there = one_block && last && last->offset == link.offset;
        if (!there)
            fabric.copy(rooms.leaving(link.offset, link.bytes),
                        one_block ? call.data : call.to.of(static_cast<int>(link.place)));
        last = &link;
    }
    co_await fabric.node_barrier();
    co_await in_rounds(fabric, 1, [&](int) { return sealed_blocks(fabric, links, rooms); });
    co_await fabric.node_barrier();
    for (const Link& link : links.in)
        if (link.to == fabric.rank())
            fabric.copy(call.from.of(static_cast<int>(link.place)),
                        rooms.in.subspan(link.offset, link.bytes));
}

}  // namespace

const std::vector<Entry>& neighbor_allgather_algorithms() {
    static const std::vector<Entry> all = {{"linear", linear_allgather, nullptr, "naive"},
                                           {"once", once},
                                           {"smp", neighbor_smp<true>, nullptr, "node"}};
    return all;
}
const std::vector<Entry>& neighbor_alltoall_algorithms() {
    static const std::vector<Entry> all = {{"linear", linear_alltoall, nullptr, "naive"},
                                           {"smp", neighbor_smp<false>, nullptr, "node"}};
    return all;
}

}  // namespace mpisec::coll
