#include "coll/rooted/root_shares.hpp"

#include <algorithm>

#include "coll/patterns/node_blocks.hpp"
#include "coll/patterns/numbers.hpp"

namespace mpisec::coll {
namespace {

/// The most bytes of a batch, unless there is not a block for each helper in that.
constexpr std::size_t batch_bytes = 4 << 20;

/// The root has copying to do, so it helps only where it has one node peer or none.
std::vector<int> helpers(const fabric::Topology& topology, int root) {
    std::vector<int> ranks = topology.members(topology.node(root)).list();
    if (ranks.size() > 2) std::erase(ranks, root);
    return ranks;
}

/// The root's node peers need no help; the others take turns in the order of ranks.
std::vector<RootShares::Share> all_shares(const fabric::Topology& topology, int root) {
    const std::vector<int> by = helpers(topology, root);
    std::vector<RootShares::Share> shares;
    for (int node_peer : topology.members(topology.node(root)))
        if (node_peer != root) shares.push_back({node_peer, node_peer, {}});
    std::size_t turn = 0;
    for (int rank = 0; rank < topology.ranks(); ++rank)
        if (!topology.same_node(rank, root)) shares.push_back({rank, by[turn++ % by.size()], {}});
    return shares;
}

}  // namespace

int helper_of(const fabric::Topology& topology, int root, int rank) {
    const std::vector<RootShares::Share> shares = all_shares(topology, root);
    return std::find_if(shares.begin(), shares.end(), [&](const auto& share) { return share.rank == rank; })
        ->helper;
}

fabric::Task RootShares::make(fabric::Fabric& fabric, const Call& call, const Blocks& roots) {
    std::vector<std::size_t> sizes(static_cast<std::size_t>(fabric.topology().ranks()),
                                   own_bytes(fabric, call, roots));
    if (!call.equal_blocks) {
        co_await share_numbers(fabric, roots.size, 0, sizes);
        if (fabric.rank() != call.root) sizes[static_cast<std::size_t>(fabric.rank())] = call.data.size();
    }

    const std::size_t fewest = helpers(fabric.topology(), call.root).size();
    std::size_t bytes = 0, half = 0;  // of the batch, of the largest
    for (const Share& share : all_shares(fabric.topology(), call.root)) {
        const std::size_t size = sizes[static_cast<std::size_t>(share.rank)];
        if (batches_.empty() || (bytes + size > batch_bytes && batches_.back().size() >= fewest)) {
            batches_.emplace_back();
            bytes = 0;
        }
        batches_.back().push_back(share);
        if (share.helper != call.root) bytes += size;
        half = std::max(half, bytes);
    }
    const fabric::PlaintextBuffer room =
        fabric.shared_plaintext(half * std::min<std::size_t>(batches_.size(), 2));
    for (std::size_t number = 0; number < batches_.size(); ++number) {
        std::size_t at = number % 2 * half;
        for (Share& share : batches_[number]) {
            if (share.helper == call.root) continue;
            share.shared = room.subspan(at, sizes[static_cast<std::size_t>(share.rank)]);
            at += share.shared.size();
        }
    }
}

}  // namespace mpisec::coll
