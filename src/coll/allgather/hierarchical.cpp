// HS1, HS2 (Lahijani et al. section IV.B, "Hierarchical shared-memory algorithms") and HSC, their concurrent
// form with several leaders:
//
//   1 every rank puts its block into the node's shared memory
//   2 blocks are sealed: HS1 all in one by the leader, HS2 each by its rank, HSC a slice by its leader
//   3 leaders all-gather the sealed blocks between nodes, into shared memory
//   4 the ranks of the node open them, each a part
//   5 every rank copies all blocks to its own buffer
#include "coll/allgather/allgather.hpp"
#include "coll/patterns/spread.hpp"

namespace mpisec::coll {
namespace {

struct Shape {
    int leaders;                 ///< per node; leader g carries the sealed blocks of slice g
    bool sealed_block_per_rank;  ///< else a sealed block per slice
};

/// What one leader carries of one node.
struct Slice {
    std::vector<std::vector<int>> sealed_blocks;  ///< the ranks in each sealed block
};

Slice slice_of(const fabric::Topology& topology, int node, int g, const Shape& shape) {
    Slice slice;
    if (!shape.sealed_block_per_rank) slice.sealed_blocks.emplace_back();
    for (int local = g; local < topology.node_size(node); local += shape.leaders) {
        const int rank = topology.members(node)[static_cast<std::size_t>(local)];
        if (shape.sealed_block_per_rank)
            slice.sealed_blocks.push_back({rank});
        else
            slice.sealed_blocks.back().push_back(rank);
    }
    return slice;
}

/// All blocks but the rank's own; those that lie side by side in both places with one copy.
void copy_others(fabric::Fabric& fabric, const Blocks& to, const Blocks& from) {
    const int ranks = fabric.topology().ranks();
    auto follows = [](const Blocks& blocks, int rank) {
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

/// A call at work on one rank.
struct Work {
    fabric::Fabric& fabric;
    const Shape shape;
    Blocks shared;                                ///< all blocks, in the node's memory
    std::vector<Group> groups;                    ///< by leader
    std::vector<fabric::CiphertextBuffer> rooms;  ///< each leader's part of the shared ciphertext

    const fabric::Topology& topology() const { return fabric.topology(); }
    std::vector<std::vector<int>> sealed_blocks(int node, int g) const {
        return slice_of(topology(), node, g, shape).sealed_blocks;
    }
    int sealer(int node, int g, const std::vector<int>& sealed_block) const {
        return shape.sealed_block_per_rank ? sealed_block.front()
                                           : topology().members(node)[static_cast<std::size_t>(g)];
    }
    std::size_t sealed_bytes(const std::vector<int>& sealed_block) const {
        return fabric::sealed_bytes(shared.bytes(sealed_block));
    }
};

/// The blocks again, in shared memory, node by node and slice by slice, so that each sealed block's plaintext
/// is one run.
Blocks share(fabric::Fabric& fabric, const Blocks& blocks, const Shape& shape) {
    const fabric::Topology& topology = fabric.topology();
    Blocks shared{nullptr, std::vector<std::size_t>(blocks.size.size()), blocks.size};
    std::size_t total = 0;
    for (int node = 0; node < topology.nodes(); ++node)
        for (int g = 0; g < shape.leaders; ++g)
            for (const auto& sealed_block : slice_of(topology, node, g, shape).sealed_blocks)
                for (int rank : sealed_block) {
                    shared.offset[static_cast<std::size_t>(rank)] = total;
                    total += blocks.of(rank).size();
                }
    shared.base = fabric.shared_plaintext(total).data();
    fabric.copy(shared.of(fabric.rank()), blocks.of(fabric.rank()));
    return shared;
}

/// Each leader's part of the shared ciphertext, in the order that doubling wants: this node's sealed blocks
/// first.
void make_rooms(Work& work) {
    for (int g = 0; g < work.shape.leaders; ++g) {
        Group group{{}, {}, work.fabric.node()};
        for (int node = 0; node < work.topology().nodes(); ++node) {
            std::size_t bytes = 0;
            for (const auto& sealed_block : work.sealed_blocks(node, g))
                bytes += work.sealed_bytes(sealed_block);
            group.ranks.push_back(work.topology().members(node)[static_cast<std::size_t>(g)]);
            group.bytes.push_back(bytes);
        }
        work.rooms.push_back(work.fabric.shared_ciphertext(group.total()));
        work.groups.push_back(std::move(group));
    }
}

/// Those sealed blocks of slice g of this node that this rank seals.
void seal_own(const Work& work, int g) {
    fabric::Fabric& fabric = work.fabric;
    std::size_t at = 0;
    for (const auto& sealed_block : work.sealed_blocks(fabric.node(), g)) {
        const std::size_t bytes = work.sealed_bytes(sealed_block);
        if (work.sealer(fabric.node(), g, sealed_block) == fabric.rank())
            fabric.seal(work.rooms[static_cast<std::size_t>(g)].part(at, bytes),
                        work.shared.room(fabric, sealed_block), {fabric.rank(), 0});
        at += bytes;
    }
}

/// All sealed blocks of other nodes in one list that the ranks of the node take turns with.
void open_share(const Work& work) {
    fabric::Fabric& fabric = work.fabric;
    const int nodes = work.topology().nodes();
    int turn = 0;
    for (int k = 1; k < nodes; ++k) {
        const int node = (fabric.node() + k) % nodes;
        for (int g = 0; g < work.shape.leaders; ++g) {
            const Group& group = work.groups[static_cast<std::size_t>(g)];
            std::size_t at = 0;
            for (int before = 0; before < k; ++before)
                at += group.bytes[static_cast<std::size_t>((fabric.node() + before) % nodes)];
            for (const auto& sealed_block : work.sealed_blocks(node, g)) {
                const std::size_t bytes = work.sealed_bytes(sealed_block);
                if (turn++ % static_cast<int>(fabric.node_peers().size()) == fabric.local())
                    fabric.open(work.shared.room(fabric, sealed_block),
                                work.rooms[static_cast<std::size_t>(g)].part(at, bytes),
                                {work.sealer(node, g, sealed_block), 0});
                at += bytes;
            }
        }
    }
}

fabric::Task hierarchical(fabric::Fabric& fabric, const Blocks& blocks, Shape shape) {
    Work work{fabric, shape, share(fabric, blocks, shape), {}, {}};
    make_rooms(work);
    const bool crosses = fabric.topology().nodes() > 1;
    if (shape.sealed_block_per_rank && crosses) seal_own(work, fabric.local() % shape.leaders);
    co_await fabric.node_barrier();
    if (fabric.local() < shape.leaders && crosses) {
        const auto g = static_cast<std::size_t>(fabric.local());
        if (!shape.sealed_block_per_rank) seal_own(work, fabric.local());
        co_await doubling(fabric, work.groups[g], work.rooms[g], [](int, fabric::CiphertextBuffer) {});
    }
    co_await fabric.node_barrier();
    open_share(work);
    co_await fabric.node_barrier();
    copy_others(fabric, blocks, work.shared);
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
