// Exchange with neighbours in a graph: all edges have their own blocks (neighbor_alltoall), or a rank has one
// block for all its destinations (neighbor_allgather). Of the d edges that leave a rank, and of as many that enter it,
// x cross nodes. All take one round.
//
//   linear  a message for every edge, sealed if it crosses nodes, long ones in segments. Messages d, seals and opens x
//   once    neighbor_allgather: a rank seals once, and all its neighbours are sent the same sealed block, a long
//           one in segments. Messages d, 1 seal, opens x
//   smp     one sealed block from node to node for all edges between them, both sides through shared memory;
//           a block of neighbor_allgather is in it once. The ranks of a node first tell each other their
//           edges. Messages, seals, opens: one per other node that the node has an edge with, shared out
//           among its ranks
#include <algorithm>

#include "coll/entries.hpp"
#include "coll/neighbor/neighbor_links.hpp"
#include "coll/patterns/edges.hpp"
#include "coll/patterns/nodes.hpp"
#include "coll/patterns/rounds.hpp"
#include "coll/patterns/segments.hpp"

namespace mpisec::coll {
namespace {

using fabric::Fabric;
using fabric::PlaintextBuffer;
using fabric::Task;

template <class BlockTo>
Task along_edges(Fabric& fabric, const Call& call, BlockTo block_to) {
    Edges edges(fabric);
    ReceivingBlocks receiving(edges);
    for (std::size_t i = 0; i < call.sources.size(); ++i)
        receiving.add(call.sources[i], call.from.of(static_cast<int>(i)));
    SendingBlocks sending(edges);
    for (std::size_t i = 0; i < call.destinations.size(); ++i) sending.add(call.destinations[i], block_to(i));
    co_await receiving.finish([&sending] { sending.next(); });
    co_await sending.finish();
}

Task linear_allgather(Fabric& fabric, const Call& call) {
    return along_edges(fabric, call, [&call](std::size_t) { return call.data; });
}
Task linear_alltoall(Fabric& fabric, const Call& call) {
    return along_edges(fabric, call, [&call](std::size_t i) { return call.to.of(static_cast<int>(i)); });
}

/// One block for all neighbours; each of its segments is sealed when its turn comes, and named by its number. Edges carry
/// only what stays inside the node.
class Once {
  public:
    Once(Fabric& fabric, const Call& call) : fabric_(fabric), call_(call), edges_(fabric) {}

    Task run() {
        receive();
        for (int to : call_.destinations)
            if (edges_.leaves_node(to))
                outside_.push_back(to);
            else
                sending_.push_back(fabric_.send_here(to, call_.data));
        if (!outside_.empty()) parts_ = block_segments(edges_, outside_.front(), call_.data.size());
        for (std::size_t i = 0; i < few_segments; ++i) send_next();
        for (auto& one : receiving_) {
            co_await edges_.finish(one);
            send_next();  // so that nobody waits for ever (SendingBlocks::next())
        }
        for (std::size_t i = 0; i < sending_.size(); ++i) {
            send_next();
            co_await sending_[i];
        }
    }

  private:
    /// Receives in the order of sending, which matters where a rank is a neighbour twice: the first segments of all blocks, and so on.
    void receive() {
        std::vector<std::vector<Range>> parts;
        std::size_t most = 0;
        for (std::size_t i = 0; i < call_.sources.size(); ++i) {
            parts.push_back(block_segments(edges_, call_.sources[i], room(i).size()));
            most = std::max(most, parts.back().size());
        }
        for (std::uint64_t index = 0; index < most; ++index)
            for (std::size_t i = 0; i < parts.size(); ++i)
                if (index < parts[i].size())
                    receiving_.push_back(receive(call_.sources[i], index, parts[i][index].of(room(i))));
    }
    PlaintextBuffer room(std::size_t edge) const { return call_.from.of(static_cast<int>(edge)); }
    Edges::Receiving receive(int from, std::uint64_t index, PlaintextBuffer part) {
        if (!edges_.leaves_node(from)) return edges_.receive(from, part);
        const fabric::CiphertextBuffer sealed_block = fabric_.ciphertext(fabric::sealed_bytes(part.size()));
        return {fabric_.receive(from, sealed_block), part, sealed_block, {from, index}};
    }
    void send_next() {
        if (sealed_ == parts_.size()) return;
        const Range& part = parts_[sealed_];
        const fabric::CiphertextBuffer sealed_block = fabric_.ciphertext(fabric::sealed_bytes(part.size));
        fabric_.seal(sealed_block, part.of(call_.data), {fabric_.rank(), sealed_++});
        for (int to : outside_) sending_.push_back(fabric_.send(to, sealed_block));
    }

    Fabric& fabric_;
    const Call& call_;
    Edges edges_;
    std::vector<Edges::Receiving> receiving_;
    std::vector<int> outside_;
    std::vector<Range> parts_;
    std::uint64_t sealed_ = 0;
    std::vector<fabric::Pending> sending_;
};

Task once(Fabric& fabric, const Call& call) {
    Once exchange(fabric, call);
    co_await exchange.run();
}

/// A node's blocks in its shared memory: those that arrive or stay, and those that go to other nodes.
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

std::span<const Entry> neighbor_allgather_algorithms() {
    static constexpr Entry all[] = {{"linear", linear_allgather, nullptr, "naive"},
                                    {"once", once},
                                    {"smp", neighbor_smp<true>, nullptr, "node"}};
    return all;
}
std::span<const Entry> neighbor_alltoall_algorithms() {
    static constexpr Entry all[] = {{"linear", linear_alltoall, nullptr, "naive"},
                                    {"smp", neighbor_smp<false>, nullptr, "node"}};
    return all;
}

}  // namespace mpisec::coll
