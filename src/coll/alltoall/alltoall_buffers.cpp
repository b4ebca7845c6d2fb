#include "coll/alltoall/alltoall_buffers.hpp"

#include "coll/patterns/numbers.hpp"

namespace mpisec::coll {
fabric::Task Arrivals::make(fabric::Fabric& fabric, const Call& call) {
    topology_ = &fabric.topology();
    node_peers_ = fabric.node_peers().size();
    each_ = agreed_bytes(Collective::alltoall, call);
    const auto ranks = static_cast<std::size_t>(topology_->ranks());
    if (each_) {
        room_ = fabric.shared_plaintext(*each_ * ranks * node_peers_);
        co_return;
    }
    std::vector<std::size_t> sizes(node_peers_ * ranks);  // by destination, then source
    co_await share_numbers(fabric, call.from.size, static_cast<std::size_t>(fabric.local()) * ranks, sizes);
    std::size_t total = 0;
    for (int node = 0; node < topology_->nodes(); ++node)
        for (int source : topology_->members(node))
            for (std::size_t local = 0; local < node_peers_; ++local) {
                offset_.push_back(total);
                size_.push_back(sizes[local * ranks + static_cast<std::size_t>(source)]);
                total += size_.back();
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
            fabric.fail();  // node peers could not say how much they expect
    }
}

void Arrivals::take(fabric::Fabric& fabric, const Call& call) const {
    for (int rank = 0; rank < fabric.topology().ranks(); ++rank)
        if (rank != fabric.rank())
            fabric.copy(call.from.of(rank), block(rank, static_cast<std::size_t>(fabric.local())));
}

fabric::Task Departures::make(fabric::Fabric& fabric, const Call& call) {
    topology_ = &fabric.topology();
    node_ = fabric.node();
    node_peers_ = fabric.node_peers().size();
    each_ = agreed_bytes(Collective::alltoall, call);
    if (each_) {
        const auto others = static_cast<std::size_t>(topology_->ranks()) - node_peers_;
        room_ = fabric.shared_plaintext(*each_ * others * node_peers_);
        co_return;
    }
    const auto nodes = static_cast<std::size_t>(topology_->nodes());
    std::vector<std::size_t> mine;  // by node
    for (int node = 0; node < topology_->nodes(); ++node)
        mine.push_back(node == node_ ? 0 : call.to.bytes(topology_->members(node)));
    std::vector<std::size_t> sizes(node_peers_ * nodes);  // by source, then node
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
