// Scatter of m bytes to each of p ranks, on N nodes of k. Rounds and seals are the root's; others open once,
// if at all.
//
//   naive        the root to everybody. Rounds p - 1, bytes m p, seals p - k
//   node         one box to a leader of each node, who opens it into shared memory. Rounds N - 1, bytes m p,
//                seals N - 1
//   binomial     as node, but leaders hand boxes on along a binomial tree. Rounds ceil(lg N), bytes m p,
//                seals N - 1; blocks must be equal, or nobody on the way would know the sizes
//   shared-seal  the root copies into shared memory, and the ranks of its node take turns in sealing and
//                sending. Rounds p / k, bytes m p / k, seals p / k, for a copy of m p bytes
#include "coll/binomial.hpp"
#include "coll/edges.hpp"
#include "coll/entries.hpp"
#include "coll/node_boxes.hpp"
#include "coll/rounds.hpp"
#include "coll/root_shares.hpp"

namespace mpisec::coll {
namespace {

fabric::Task naive(fabric::Fabric& fabric, const Call& call) {
    Edges edges(fabric);
    if (fabric.rank() != call.root) {
        co_await edges.finish(edges.receive(call.root, call.data));
        co_return;
    }
    std::vector<fabric::Pending> sending;
    for (int rank = 0; rank < fabric.topology().ranks(); ++rank)
        if (rank != call.root) sending.push_back(edges.send(rank, call.to.of(rank)));
    for (auto& one : sending) co_await one;
}

/// The root seals a box for each node, named by its place; each leader hands on its children's and opens its
/// own into its node's blocks. The node meets when they are there.
template <class Tree>
fabric::Task among_leaders(fabric::Fabric& fabric, const Call& call, const NodeBlocks& blocks) {
    const Leaders leaders(fabric.topology(), call.root);
    const NodeBoxes<Tree> boxes(fabric, leaders, call.to, blocks);
    const bool root = boxes.place() == 0;
    auto name = [&](int place) { return fabric::Box{call.root, static_cast<std::uint32_t>(place)}; };
    auto seal = [&](int place) {
        fabric.seal(boxes.box(place), call.to.pack(fabric, fabric.topology().members(leaders.node(place))),
                    name(place));
    };
    if (root)
        co_await fabric.node_barrier();
    else
        co_await fabric.receive(leaders.rank(boxes.tree().parent()), boxes.all());
    std::vector<fabric::Pending> sending;
    for (int child : boxes.tree().children()) {
        for (int k = 0; root && k < boxes.width(child); ++k) seal(child + k);
        sending.push_back(fabric.send(leaders.rank(child), boxes.subtree(child)));
    }
    if (!root) {
        fabric.open(blocks.all, boxes.box(boxes.place()), name(boxes.place()));
        co_await fabric.node_barrier();
    }
    for (auto& one : sending) co_await one;
}

template <class Tree>
fabric::Task by_node(fabric::Fabric& fabric, const Call& call) {
    const bool root = fabric.rank() == call.root;
    NodeBlocks blocks;
    co_await make_room(fabric, own_bytes(fabric, call, call.to), call.equal_blocks, blocks);
    for (std::size_t i = 0; root && i < blocks.of.size(); ++i)
        if (fabric.mates()[i] != call.root) fabric.copy(blocks.of[i], call.to.of(fabric.mates()[i]));
    if (Leaders(fabric.topology(), call.root).lead(fabric.rank()))
        co_await among_leaders<Tree>(fabric, call, blocks);
    else
        co_await fabric.node_barrier();
    if (!root) fabric.copy(call.data, blocks.of[static_cast<std::size_t>(fabric.local())]);
}

fabric::Task seal_share(fabric::Fabric& fabric, const Call& call) {
    const bool root = fabric.rank() == call.root;
    Blocks shared;
    co_await share_blocks(fabric, call, call.to, shared);
    for (int rank = 0; root && rank < fabric.topology().ranks(); ++rank)
        if (shared.of(rank).size() > 0) fabric.copy(shared.of(rank), call.to.of(rank));
    co_await fabric.node_barrier();
    const std::vector<int> mine = helped_by(fabric.topology(), call.root, fabric.rank());
    co_await in_rounds(fabric, static_cast<int>(mine.size()), [&](int i) {
        const int rank = mine[static_cast<std::size_t>(i)];
        const fabric::Plain block = root ? call.to.of(rank) : shared.of(rank);
        return Round{{{rank, block, static_cast<std::uint32_t>(rank)}}, {}};
    });
    if (!root) fabric.copy(call.data, shared.of(fabric.rank()));
}

fabric::Task shared_seal(fabric::Fabric& fabric, const Call& call) {
    if (fabric.topology().same_node(fabric.rank(), call.root)) {
        co_await seal_share(fabric, call);
    } else {
        const int helper = helper_of(fabric.topology(), call.root, fabric.rank());
        const auto index = static_cast<std::uint32_t>(fabric.rank());
        co_await in_rounds(fabric, 1, [&](int) { return Round{{}, {{helper, call.data, index}}}; });
    }
}

bool equal_blocks(const fabric::Topology&, const Call& call) {
    return call.equal_blocks;
}

}  // namespace

const std::vector<Entry>& scatter_algorithms() {
    static const std::vector<Entry> all = {{"naive", naive},
                                           {"node", by_node<Flat>},
                                           {"binomial", by_node<Binomial>, equal_blocks},
                                           {"shared-seal", shared_seal}};
    return all;
}

}  // namespace mpisec::coll
