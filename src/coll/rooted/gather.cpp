// Gather of m bytes from each of p ranks, on N nodes of k. Rounds, bytes and opens are the root's, or those
// of one of its helpers; others seal once, if at all.
//
//   linear       everybody to the root, long blocks in segments. Rounds p - 1, bytes m (p - 1), opens p - k
//   smp          a node's blocks meet in shared memory, its leader sends them to the root in one sealed
//                block. Rounds and opens N - 1, bytes m (p - k)
//   binomial     as smp, but leaders hand sealed blocks on along a binomial tree. Rounds ceil(lg N), all
//                else the same; blocks must be equal, or nobody on the way would know the sizes
//   shared-open  everybody to the root's node, whose other ranks take turns in opening into shared memory;
//                the root copies. Rounds and opens (p - k) / (k - 1), bytes m for each
#include <algorithm>

#include "coll/entries.hpp"
#include "coll/patterns/binomial.hpp"
#include "coll/patterns/edges.hpp"
#include "coll/patterns/node_sealed_blocks.hpp"
#include "coll/patterns/rounds.hpp"
#include "coll/patterns/segments.hpp"
#include "coll/rooted/root_shares.hpp"

namespace mpisec::coll {
namespace {

fabric::Task gather_linear(fabric::Fabric& fabric, const Call& call) {
    Edges edges(fabric);
    if (fabric.rank() != call.root) {
        SendingBlocks sending(edges);
        sending.add(call.root, call.data);
        co_await sending.finish();
        co_return;
    }
    ReceivingBlocks receiving(edges);
    for (int rank = 0; rank < fabric.topology().ranks(); ++rank)
        if (rank != call.root) receiving.add(rank, call.from.of(rank));
    co_await receiving.finish();
}

/// Each leader seals its node's blocks as one sealed block, its number 0, and sends it with those of its children.
template <class Tree>
fabric::Task gather_among_leaders(fabric::Fabric& fabric, const Call& call, const NodeBlocks& blocks) {
    const Leaders leaders(fabric.topology(), call.root);
    const NodeSealedBlocks<Tree> sealed_blocks(fabric, leaders, call.from, blocks);
    auto open = [&](int place) {
        const Ranks ranks = fabric.topology().members(leaders.node(place));
        const fabric::PlaintextBuffer room = call.from.room(fabric, ranks);
        fabric.open(room, sealed_blocks.sealed_block(place), {leaders.rank(place), 0});
        call.from.unpack(fabric, ranks, room);
    };
    std::vector<int> children = sealed_blocks.tree().children();
    std::reverse(children.begin(), children.end());  // the narrowest subtree arrives first
    std::vector<fabric::Pending> receiving;
    for (int child : children)
        receiving.push_back(fabric.receive(leaders.rank(child), sealed_blocks.subtree(child)));
    const bool root = sealed_blocks.place() == 0;
    if (!root) fabric.seal(sealed_blocks.sealed_block(sealed_blocks.place()), blocks.all, {fabric.rank(), 0});
    for (std::size_t i = 0; i < children.size(); ++i) {
        co_await receiving[i];
        for (int k = 0; root && k < sealed_blocks.width(children[i]); ++k) open(children[i] + k);
    }
    if (!root) co_await fabric.send(leaders.rank(sealed_blocks.tree().parent()), sealed_blocks.all());
}

template <class Tree>
fabric::Task gather_by_node(fabric::Fabric& fabric, const Call& call) {
    const bool root = fabric.rank() == call.root;
    NodeBlocks blocks;
    co_await make_room(fabric, own_bytes(fabric, call, call.from), call.equal_blocks, blocks);
    if (!root) fabric.copy(blocks.of[static_cast<std::size_t>(fabric.local())], call.data);
    co_await fabric.node_barrier();
    for (std::size_t i = 0; root && i < blocks.of.size(); ++i)
        if (fabric.node_peers()[i] != call.root)
            fabric.copy(call.from.of(fabric.node_peers()[i]), blocks.of[i]);
    if (Leaders(fabric.topology(), call.root).lead(fabric.rank()))
        co_await gather_among_leaders<Tree>(fabric, call, blocks);
}

/// What a rank of the root's node does: a batch of blocks is received into shared memory, the node meets, and the
/// root copies the batch while the next one arrives.
class Opening {
  public:
    Opening(fabric::Fabric& fabric, const Call& call) : fabric_(fabric), call_(call) {}

    fabric::Task run() {
        co_await shares_.make(fabric_, call_, call_.from);
        Rounds rounds{shares_.batches(), [this](int i) { return round(i); }};
        rounds.after = [this](int i) { return after(i); };
        co_await in_rounds(fabric_, std::move(rounds));
    }

  private:
    bool root() const { return fabric_.rank() == call_.root; }

    Round round(int batch) const {
        Round round;
        for (const auto& share : shares_.batch(batch))
            if (share.helper == fabric_.rank() && share.rank != fabric_.rank())
                round.in.push_back({share.rank, root() ? call_.from.of(share.rank) : share.shared, 0});
        return round;
    }
    fabric::Task after(int batch) const {
        for (const auto& share : shares_.batch(batch))
            if (share.rank == fabric_.rank()) fabric_.copy(share.shared, call_.data);
        co_await fabric_.node_barrier();
        for (const auto& share : shares_.batch(batch))
            if (root() && share.helper != call_.root) fabric_.copy(call_.from.of(share.rank), share.shared);
    }

    fabric::Fabric& fabric_;
    const Call& call_;
    RootShares shares_;
};

fabric::Task shared_open(fabric::Fabric& fabric, const Call& call) {
    if (fabric.topology().same_node(fabric.rank(), call.root)) {
        Opening opening(fabric, call);
        co_await opening.run();
    } else {
        const fabric::CiphertextBuffer sealed_block =
            fabric.ciphertext(fabric::sealed_bytes(call.data.size()));
        fabric.seal(sealed_block, call.data, {fabric.rank(), 0});
        co_await fabric.send(helper_of(fabric.topology(), call.root, fabric.rank()), sealed_block);
    }
}

bool equal_blocks(const fabric::Topology&, const Call& call) {
    return call.equal_blocks;
}

}  // namespace

std::span<const Entry> gather_algorithms() {
    static constexpr Entry all[] = {{"linear", gather_linear, nullptr, "naive"},
                                    {"smp", gather_by_node<Flat>, nullptr, "node"},
                                    {"binomial", gather_by_node<Binomial>, equal_blocks},
                                    {"shared-open", shared_open}};
    return all;
}

}  // namespace mpisec::coll
