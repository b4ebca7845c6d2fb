// Scatter of m bytes to each of p ranks, on N nodes of k. Rounds, bytes and seals are the root's, or those of
// one of its helpers; others open once, if at all.
//
//   linear       the root to everybody, long blocks in segments. Rounds p - 1, bytes m (p - 1), seals p - k
//   smp          one sealed block to the leader of each node, which opens it into shared memory. Rounds and
//                seals N - 1, bytes m (p - k)
//   binomial     as smp, but leaders hand sealed blocks on along a binomial tree. Rounds ceil(lg N), all
//                else the same; blocks must be equal, or nobody on the way would know the sizes
//   shared-seal  the root copies into shared memory; the other ranks of its node take turns in sealing and
//                sending. Rounds and seals (p - k) / (k - 1), bytes m for each
#include "coll/entries.hpp"
#include "coll/patterns/binomial.hpp"
#include "coll/patterns/edges.hpp"
#include "coll/patterns/node_sealed_blocks.hpp"
#include "coll/patterns/rounds.hpp"
#include "coll/patterns/segments.hpp"
#include "coll/rooted/root_shares.hpp"

namespace mpisec::coll {
namespace {

fabric::Task scatter_linear(fabric::Fabric& fabric, const Call& call) {
    Edges edges(fabric);
    if (fabric.rank() != call.root) {
        ReceivingBlocks receiving(edges);
        receiving.add(call.root, call.data);
        co_await receiving.finish();
        co_return;
    }
    SendingBlocks sending(edges);
    for (int rank = 0; rank < fabric.topology().ranks(); ++rank)
        if (rank != call.root) sending.add(rank, call.to.of(rank));
    co_await sending.finish_few();
}

/// The root makes a sealed block for each node, named by its place; each leader hands on its children's sealed blocks
/// and opens its own into its node's blocks. The node meets when these are there.
template <class Tree>
fabric::Task scatter_among_leaders(fabric::Fabric& fabric, const Call& call, const NodeBlocks& blocks) {
    const Leaders leaders(fabric.topology(), call.root);
    const NodeSealedBlocks<Tree> sealed_blocks(fabric, leaders, call.to, blocks);
    const bool root = sealed_blocks.place() == 0;
    auto name = [&](int place) { return fabric::SealedBlock{call.root, static_cast<std::uint64_t>(place)}; };
    auto seal = [&](int place) {
        fabric.seal(sealed_blocks.sealed_block(place),
                    call.to.pack(fabric, fabric.topology().members(leaders.node(place))), name(place));
    };
    if (root)
        co_await fabric.node_barrier();
    else
        co_await fabric.receive(leaders.rank(sealed_blocks.tree().parent()), sealed_blocks.all());
    std::vector<fabric::Pending> sending;
    for (int child : sealed_blocks.tree().children()) {
        for (int k = 0; root && k < sealed_blocks.width(child); ++k) seal(child + k);
        sending.push_back(fabric.send(leaders.rank(child), sealed_blocks.subtree(child)));
    }
    if (!root) {
        fabric.open(blocks.all, sealed_blocks.sealed_block(sealed_blocks.place()),
                    name(sealed_blocks.place()));
        co_await fabric.node_barrier();
    }
    for (auto& one : sending) co_await one;
}

template <class Tree>
fabric::Task scatter_by_node(fabric::Fabric& fabric, const Call& call) {
    const bool root = fabric.rank() == call.root;
    NodeBlocks blocks;
    co_await make_room(fabric, own_bytes(fabric, call, call.to), call.equal_blocks, blocks);
    for (std::size_t i = 0; root && i < blocks.of.size(); ++i)
        if (fabric.node_peers()[i] != call.root)
            fabric.copy(blocks.of[i], call.to.of(fabric.node_peers()[i]));
    if (Leaders(fabric.topology(), call.root).lead(fabric.rank()))
        co_await scatter_among_leaders<Tree>(fabric, call, blocks);
    else
        co_await fabric.node_barrier();
    if (!root) fabric.copy(call.data, blocks.of[static_cast<std::size_t>(fabric.local())]);
}

/// What a rank of the root's node does: the root copies a batch of blocks into shared memory, the node meets,
/// and the batch is sealed and sent while the root copies the next one.
class Sealing {
  public:
    Sealing(fabric::Fabric& fabric, const Call& call) : fabric_(fabric), call_(call) {}

    fabric::Task run() {
        co_await shares_.make(fabric_, call_, call_.to);
        Rounds rounds{shares_.batches(), [this](int i) { return round(i); }};
        rounds.before = [this](int i) { return before(i); };
        co_await in_rounds(fabric_, std::move(rounds));
    }

  private:
    bool root() const { return fabric_.rank() == call_.root; }

    fabric::Task before(int batch) const {
        for (const auto& share : shares_.batch(batch))
            if (root() && share.helper != call_.root) fabric_.copy(share.shared, call_.to.of(share.rank));
        co_await fabric_.node_barrier();
        for (const auto& share : shares_.batch(batch))
            if (share.rank == fabric_.rank()) fabric_.copy(call_.data, share.shared);
    }
    Round round(int batch) const {
        Round round;
        for (const auto& share : shares_.batch(batch)) {
            if (share.helper != fabric_.rank() || share.rank == fabric_.rank()) continue;
            const fabric::Plaintext block = root() ? call_.to.of(share.rank) : share.shared;
            round.out.push_back({share.rank, block, static_cast<std::uint64_t>(share.rank)});
        }
        return round;
    }

    fabric::Fabric& fabric_;
    const Call& call_;
    RootShares shares_;
};

fabric::Task shared_seal(fabric::Fabric& fabric, const Call& call) {
    if (fabric.topology().same_node(fabric.rank(), call.root)) {
        Sealing sealing(fabric, call);
        co_await sealing.run();
    } else {
        const int helper = helper_of(fabric.topology(), call.root, fabric.rank());
        const auto index = static_cast<std::uint64_t>(fabric.rank());
        co_await in_rounds(fabric, 1, [&](int) { return Round{{}, {{helper, call.data, index}}}; });
    }
}

bool have_equal_blocks(const fabric::Topology&, const Call& call) {
    return call.equal_blocks;
}

}  // namespace

std::span<const Entry> scatter_algorithms() {
    static constexpr Entry all[] = {{"linear", scatter_linear, nullptr, "naive"},
                                    {"smp", scatter_by_node<Flat>, nullptr, "node"},
                                    {"binomial", scatter_by_node<Binomial>, have_equal_blocks},
                                    {"shared-seal", shared_seal}};
    return all;
}

}  // namespace mpisec::coll
