// HS1, HS2 (Lahijani et al. section IV.B, "Hierarchical shared-memory algorithms") and HSC, their concurrent
// form with several leaders:
//
//   1 every rank puts its block into the node's shared memory
//   2 sealed blocks are sealed: HS1 one by the leader, HS2 one per rank, HSC one per slice by its leader
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

fabric::Task hierarchical(fabric::Fabric& fabric, const Blocks& blocks, Shape shape) {
    const fabric::Topology& topology = fabric.topology();

    // The blocks again, in shared memory, node by node and slice by slice, so that each sealed block's
    // plaintext is one run.
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

    // Each leader's part of the shared ciphertext, in the order that doubling wants: this node's sealed
    // blocks first.
    std::vector<Group> groups;
    std::vector<fabric::CiphertextBuffer> rooms;
    for (int g = 0; g < shape.leaders; ++g) {
        Group group{{}, {}, fabric.node()};
        for (int node = 0; node < topology.nodes(); ++node) {
            std::size_t bytes = 0;
            for (const auto& sealed_block : slice_of(topology, node, g, shape).sealed_blocks)
                bytes += fabric::sealed_bytes(blocks.bytes(sealed_block));
            group.ranks.push_back(topology.members(node)[static_cast<std::size_t>(g)]);
            group.bytes.push_back(bytes);
        }
        rooms.push_back(fabric.shared_cipher(group.total()));
        groups.push_back(std::move(group));
    }
    auto sealer = [&](int node, int g, const std::vector<int>& sealed_block) {
        return shape.sealed_block_per_rank ? sealed_block.front()
                                           : topology.members(node)[static_cast<std::size_t>(g)];
    };
    auto seal_own = [&](int g) {
        std::size_t at = 0;
        for (const auto& sealed_block : slice_of(topology, fabric.node(), g, shape).sealed_blocks) {
            const std::size_t bytes = fabric::sealed_bytes(blocks.bytes(sealed_block));
            if (sealer(fabric.node(), g, sealed_block) == fabric.rank())
                fabric.seal(rooms[static_cast<std::size_t>(g)].part(at, bytes),
                            shared.room(fabric, sealed_block), {fabric.rank(), 0});
            at += bytes;
        }
    };
    const bool crosses = topology.nodes() > 1;
    if (shape.sealed_block_per_rank && crosses) seal_own(fabric.local() % shape.leaders);
    co_await fabric.node_barrier();
    if (fabric.local() < shape.leaders && crosses) {
        const auto g = static_cast<std::size_t>(fabric.local());
        if (!shape.sealed_block_per_rank) seal_own(fabric.local());
        co_await doubling(fabric, groups[g], rooms[g], [](int, fabric::CiphertextBuffer) {});
    }
    co_await fabric.node_barrier();

    // All sealed blocks in one list that the ranks of the node take turns with.
    int turn = 0;
    for (int k = 1; k < topology.nodes(); ++k) {
        const int node = (fabric.node() + k) % topology.nodes();
        for (int g = 0; g < shape.leaders; ++g) {
            const Group& group = groups[static_cast<std::size_t>(g)];
            std::size_t at = 0;
            for (int before = 0; before < k; ++before)
                at += group.bytes[static_cast<std::size_t>((fabric.node() + before) % topology.nodes())];
            for (const auto& sealed_block : slice_of(topology, node, g, shape).sealed_blocks) {
                const std::size_t bytes = fabric::sealed_bytes(blocks.bytes(sealed_block));
                if (turn++ % static_cast<int>(fabric.node_peers().size()) == fabric.local())
                    fabric.open(shared.room(fabric, sealed_block),
                                rooms[static_cast<std::size_t>(g)].part(at, bytes),
                                {sealer(node, g, sealed_block), 0});
                at += bytes;
            }
        }
    }
    co_await fabric.node_barrier();
    copy_others(fabric, blocks, shared);
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
