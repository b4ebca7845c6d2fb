// HS1, HS2 (Lahijani et al. section IV.B, "Hierarchical shared-memory algorithms") and HSC, their concurrent
// form with several leaders:
//
//   1 every rank puts its block into the node's shared memory
//   2 blocks are sealed: HS1 all in one by the leader, HS2 each by its rank, HSC a slice by its leader
//   3 leaders all-gather the sealed blocks between nodes, into shared memory
//   4 the ranks of the node open them, each a part
//   5 every rank copies all blocks to its own buffer
#include "coll/allgather/allgather.hpp"
#include "coll/allgather/shared_blocks.hpp"
#include "coll/patterns/spread.hpp"

namespace mpisec::coll {
namespace {

struct Shape {
    int leaders;                 ///< per node; leader g carries the sealed blocks of slice g
    bool sealed_block_per_rank;  ///< else a sealed block per slice
};

/// Copies all blocks but the rank's own; blocks that lie side by side in both places need only one copy.
void copy_others(fabric::Fabric& fabric, const Blocks& to, const SharedBlocks& from) {
    const int ranks = fabric.topology().ranks();
    auto follows = [](const auto& blocks, int rank) {
        const fabric::PlaintextBuffer block = blocks.of(rank);
        return blocks.of(rank + 1).data() == block.data() + block.size();
    };
    for (int first = 0, end = 0; first < ranks; first = end) {
        end = first + 1;
        if (first == fabric.rank()) continue;
        std::size_t bytes = from.of(first).size();
        for (; end < ranks && end != fabric.rank() && follows(to, end - 1) && follows(from, end - 1); ++end)
            bytes += from.of(end).size();
        fabric.copy({to.of(first).data(), bytes}, {from.of(first).data(), bytes});
    }
}

/// One rank's work in a call.
class Work {
  public:
    Work(fabric::Fabric& fabric, const Blocks& blocks, Shape shape)
        : fabric_(fabric), shape_(shape), shared_(fabric, blocks, shape.leaders) {
        fabric.copy(shared_.of(fabric.rank()), blocks.of(fabric.rank()));
        for (int g = 0; g < shape.leaders; ++g) {
            std::size_t bytes = 0;
            for (int node = 0; node < topology_.nodes(); ++node) bytes += sealed_bytes(node, g);
            rooms_.push_back(fabric.shared_ciphertext(bytes));
        }
    }

    const SharedBlocks& shared() const { return shared_; }

    /// Seals those sealed blocks of slice g of this node that are this rank's to seal.
    void seal_own(int g) {
        std::size_t at = 0;
        visit_sealed_blocks(fabric_.node(), g, [&](int first, int last, std::size_t bytes) {
            if (first == fabric_.rank())
                fabric_.seal(room(g).part(at, bytes), shared_.run(first, last), {first, 0});
            at += bytes;
        });
    }

    /// All-gathers the sealed blocks of slice g of all nodes, in the order that doubling needs: this node's first.
    fabric::Task between_nodes(int g) {
        Group group{{}, {}, fabric_.node()};
        for (int node = 0; node < topology_.nodes(); ++node) {
            group.ranks.push_back(slice(node, g).first());
            group.bytes.push_back(sealed_bytes(node, g));
        }
        return doubling(fabric_, std::move(group), room(g), [](int, fabric::CiphertextBuffer) {});
    }

    /// Opens this rank's share: all sealed blocks of other nodes are one list, in which the ranks of the node take turns.
    void open_share() {
        const int nodes = topology_.nodes(), node_peers = static_cast<int>(fabric_.node_peers().size());
        std::vector<std::size_t> at;  // by slice
        for (int g = 0; g < shape_.leaders; ++g) at.push_back(sealed_bytes(fabric_.node(), g));
        int turn = 0;
        for (int k = 1; k < nodes; ++k)
            for (int g = 0; g < shape_.leaders; ++g) {
                std::size_t& offset = at[static_cast<std::size_t>(g)];
                visit_sealed_blocks(
                    (fabric_.node() + k) % nodes, g, [&](int first, int last, std::size_t bytes) {
                        if (turn++ % node_peers == fabric_.local())
                            fabric_.open(shared_.run(first, last), room(g).part(offset, bytes), {first, 0});
                        offset += bytes;
                    });
            }
    }

  private:
    Slice slice(int node, int g) const { return {topology_, node, g, shape_.leaders}; }
    fabric::CiphertextBuffer room(int g) const { return rooms_[static_cast<std::size_t>(g)]; }

    /// Calls `visit`(first rank, which seals it, last rank, bytes) for each sealed block, in their order.
    template <class Visit>
    void visit_sealed_blocks(int node, int g, Visit visit) const {
        const Slice ranks = slice(node, g);
        if (!shape_.sealed_block_per_rank)
            return visit(ranks.first(), ranks.last(), fabric::sealed_bytes(shared_.bytes(ranks)));
        for (int index = 0; index < ranks.size(); ++index) {
            const int rank = ranks.rank(index);
            visit(rank, rank, fabric::sealed_bytes(shared_.bytes(rank)));
        }
    }
    std::size_t sealed_bytes(int node, int g) const {
        const Slice ranks = slice(node, g);
        const int tags = shape_.sealed_block_per_rank ? ranks.size() : 1;
        return shared_.bytes(ranks) + static_cast<std::size_t>(tags) * fabric::sealed_bytes(0);
    }

    fabric::Fabric& fabric_;
    const fabric::Topology& topology_ = fabric_.topology();
    const Shape shape_;
    const SharedBlocks shared_;                    ///< all blocks, in the node's memory
    std::vector<fabric::CiphertextBuffer> rooms_;  ///< by leader: its part of the shared ciphertext
};

fabric::Task hierarchical(fabric::Fabric& fabric, const Blocks& blocks, Shape shape) {
    Work work(fabric, blocks, shape);
    const bool crosses = fabric.topology().nodes() > 1, leads = fabric.local() < shape.leaders;
    if (shape.sealed_block_per_rank && crosses) work.seal_own(fabric.local() % shape.leaders);
    co_await fabric.node_barrier();
    if (leads && crosses) {
        if (!shape.sealed_block_per_rank) work.seal_own(fabric.local());
        co_await work.between_nodes(fabric.local());
    }
    co_await fabric.node_barrier();
    work.open_share();
    co_await fabric.node_barrier();
    copy_others(fabric, blocks, work.shared());
}

}  // namespace

fabric::Task allgather_hs1(fabric::Fabric& fabric, const Blocks& blocks) {
    return hierarchical(fabric, blocks, {1, false});
}
fabric::Task allgather_hs2(fabric::Fabric& fabric, const Blocks& blocks) {
    return hierarchical(fabric, blocks, {1, true});
}
fabric::Task allgather_hsc(fabric::Fabric& fabric, const Blocks& blocks) {
    return hierarchical(fabric, blocks, {fabric.topology().smallest_node(), false});
}

}  // namespace mpisec::coll
