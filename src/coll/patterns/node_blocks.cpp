#include "coll/patterns/node_blocks.hpp"

#include <numeric>

#include "coll/patterns/numbers.hpp"

namespace mpisec::coll {

std::size_t own_bytes(const fabric::Fabric& fabric, const Call& call, const Blocks& roots) {
    if (fabric.rank() != call.root) return call.data.size();
    return call.equal_blocks ? roots.of(call.root).size() : 0;
}

fabric::Task make_room(fabric::Fabric& fabric, std::size_t mine, bool equal, NodeBlocks& blocks) {
    std::vector<std::size_t> sizes(fabric.node_peers().size(), mine);
    if (!equal)
        co_await share_numbers(fabric, std::vector<std::size_t>(1, mine),
                               static_cast<std::size_t>(fabric.local()), sizes);
    blocks.all = fabric.shared_plaintext(std::accumulate(sizes.begin(), sizes.end(), std::size_t{0}));
    std::size_t at = 0;
    for (std::size_t size : sizes) {
        blocks.of.push_back(blocks.all.subspan(at, size));
        at += size;
    }
}

}  // namespace mpisec::coll
