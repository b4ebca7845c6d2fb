#include "coll/alltoall/alltoall_buffers.hpp"

#include "coll/patterns/numbers.hpp"

namespace mpisec::coll {
namespace {

/// Of each rank's blocks, when all are equal.
std::size_t block_bytes(const Call& call) {
    return agreed_bytes(Collective::alltoall, call).value_or(0);
}

}  // namespace

fabric::Task Arrivals::make(fabric::Fabric& fabric, const Call& call) {
    const fabric::Topology& topology = fabric.topology();
    const auto ranks = static_cast<std::size_t>(topology.ranks());
    node_peers_ = fabric.node_peers().size();
    std::vector<std::size_t> sizes(node_peers_ * ranks, block_bytes(call));  // by destination, then source
    if (!call.equal_blocks)
        co_await share_numbers(fabric, call.from.size, static_cast<std::size_t>(fabric.local()) * ranks,
                               sizes);
    size_.resize(sizes.size());
    offset_.resize(sizes.size());
    std::size_t total = 0;
    for (int node = 0; node < topology.nodes(); ++node)
        for (int source : topology.members(node))
            for (std::size_t local = 0; local < node_peers_; ++local) {
                const std::size_t size = sizes[local * ranks + static_cast<std::size_t>(source)];
                size_[cell(source, local)] = size;
                offset_[cell(source, local)] = total;
                total += size;
            }
    room_ = fabric.shared_plaintext(total);
}

void Arrivals::put(fabric::Fabric& fabric, const Call& call) const {
    for (std::size_t local = 0; local < node_peers_; ++local) {
        const fabric::PlaintextBuffer there = block(fabric.rank(), local),
                                      mine = call.to.of(fabric.node_peers()[local]);
        if (fabric.node_peers()[local] == fabric.rank()) continue;
        if (there.size() == mine.size())
            fabric.copy(there, mine);
        else
            fabric.fail();  // node peers could not tell how much they want
    }
}

void Arrivals::take(fabric::Fabric& fabric, const Call& call) const {
    for (int rank = 0; rank < fabric.topology().ranks(); ++rank)
        if (rank != fabric.rank())
            fabric.copy(call.from.of(rank), block(rank, static_cast<std::size_t>(fabric.local())));
}

fabric::Task Departures::make(fabric::Fabric& fabric, const Call& call) {
    const fabric::Topology& topology = fabric.topology();
    const auto nodes = static_cast<std::size_t>(topology.nodes());
    node_peers_ = fabric.node_peers().size();
    std::vector<std::size_t> mine;  // by node
    for (int node = 0; node < topology.nodes(); ++node) {
        const std::vector<int>& ranks = topology.members(node);
        if (node == fabric.node())
            mine.push_back(0);  // these stay
        else
            mine.push_back(call.to.bytes(ranks));
    }
    std::vector<std::size_t> sizes;  // by source, then node
    for (std::size_t local = 0; local < node_peers_; ++local)
        sizes.insert(sizes.end(), mine.begin(), mine.end());
    if (!call.equal_blocks)
        co_await share_numbers(fabric, mine, static_cast<std::size_t>(fabric.local()) * nodes, sizes);
    std::size_t total = 0;
    for (std::size_t node = 0; node < nodes; ++node)
        for (std::size_t local = 0; local < node_peers_; ++local) {
            offset_.push_back(total);
            size_.push_back(sizes[local * nodes + node]);
            total += size_.back();
        }
    room_ = fabric.shared_plaintext(total);
}

void Departures::put(fabric::Fabric& fabric, const Call& call) const {
    for (int node = 0; node < fabric.topology().nodes(); ++node)
        if (node != fabric.node())
            call.to.gather(fabric, fabric.topology().members(node), run(node, fabric.local()));
}

}  // namespace mpisec::coll
