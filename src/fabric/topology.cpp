#include "fabric/topology.hpp"

#include <unordered_map>
#include <utility>

namespace mpisec::fabric {
namespace {

std::vector<int> numbered(const std::vector<int>& names) {
    std::unordered_map<int, int> number;
    std::vector<int> node;
    node.reserve(names.size());
    for (int name : names)
        node.push_back(number.try_emplace(name, static_cast<int>(number.size())).first->second);
    return node;
}

}  // namespace

Topology::Topology(const std::vector<int>& node_of_rank) : node_map_(numbered(node_of_rank)) {
    for (int rank = 1; rank < ranks() && in_rank_order_; ++rank)
        in_rank_order_ = node(rank - 1) <= node(rank);
    if (node_map_.kind() == NodeMap::Kind::listed) {
        members_.resize(static_cast<std::size_t>(nodes()));
        for (int rank = 0; rank < ranks(); ++rank) {
            auto& node_peers = members_[static_cast<std::size_t>(node(rank))];
            local_.push_back(static_cast<int>(node_peers.size()));
            node_peers.push_back(rank);
        }
        int before = 0;
        for (const auto& node_peers : members_)
            before_.push_back(std::exchange(before, before + static_cast<int>(node_peers.size())));
    }
    for (int node = 0; node < nodes(); ++node)
        smallest_ = smallest_ == 0 ? node_size(node) : std::min(smallest_, node_size(node));
}

std::size_t Topology::bytes_kept() const {
    if (node_map_.kind() != NodeMap::Kind::listed) return 0;
    const auto p = static_cast<std::size_t>(ranks()), n = static_cast<std::size_t>(nodes());
    return 3 * p * sizeof(int) +
           n * (sizeof(int) + sizeof(std::vector<int>));  // node, place and member; of each node
}

}  // namespace mpisec::fabric
