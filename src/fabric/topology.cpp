#include "fabric/topology.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace mpisec::fabric {

Topology::Topology(const std::vector<int>& node_of_rank) {
    std::map<int, int> number;
    for (int name : node_of_rank) {
        const int node = number.try_emplace(name, static_cast<int>(number.size())).first->second;
        if (static_cast<std::size_t>(node) == members_.size()) members_.emplace_back();
        auto& node_peers = members_[static_cast<std::size_t>(node)];
        local_.push_back(static_cast<int>(node_peers.size()));
        node_peers.push_back(static_cast<int>(node_.size()));
        node_.push_back(node);
    }
    int before = 0;
    for (const auto& node_peers : members_) {
        before_.push_back(std::exchange(before, before + static_cast<int>(node_peers.size())));
        const int size = static_cast<int>(node_peers.size());
        smallest_ = smallest_ == 0 ? size : std::min(smallest_, size);
    }
}

}  // namespace mpisec::fabric
