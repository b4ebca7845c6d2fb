#include "coll/root_shares.hpp"

#include "coll/node_blocks.hpp"
#include "coll/numbers.hpp"

namespace mpisec::coll {
namespace {

/// They take turns in the order of ranks.
template <class Visit>
void for_each_helped(const fabric::Topology& topology, int root, Visit visit) {
    const std::vector<int>& helpers = topology.members(topology.node(root));
    std::size_t turn = 0;
    for (int rank = 0; rank < topology.ranks(); ++rank)
        if (!topology.same_node(rank, root)) visit(rank, helpers[turn++ % helpers.size()]);
}

}  // namespace

int helper_of(const fabric::Topology& topology, int root, int rank) {
    int found = root;
    for_each_helped(topology, root, [&](int helped, int helper) {
        if (helped == rank) found = helper;
    });
    return found;
}

std::vector<int> helped_by(const fabric::Topology& topology, int root, int helper) {
    std::vector<int> ranks;
    for_each_helped(topology, root, [&](int helped, int by) {
        if (by == helper) ranks.push_back(helped);
    });
    return ranks;
}

fabric::Task share_blocks(fabric::Fabric& fabric, const Call& call, const Blocks& roots, Blocks& shared) {
    shared.size.assign(static_cast<std::size_t>(fabric.topology().ranks()), own_bytes(fabric, call, roots));
    if (!call.equal_blocks) co_await share_numbers(fabric, roots.size, 0, shared.size);
    shared.size[static_cast<std::size_t>(call.root)] = 0;
    for (int rank : helped_by(fabric.topology(), call.root, call.root))
        shared.size[static_cast<std::size_t>(rank)] = 0;
    std::size_t total = 0;
    for (std::size_t size : shared.size) {
        shared.offset.push_back(total);
        total += size;
    }
    shared.base = fabric.shared_plain(total).data();
}

}  // namespace mpisec::coll
