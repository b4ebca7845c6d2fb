// Exchange with neighbours in a graph: all edges have their own blocks (neighbor_alltoall), or a rank has one
// for all that it leads to (neighbor_allgather).
//
//   naive  every edge a message, sealed if it goes to another node. 1 round; seals as many as edges that
//          leave the node, opens as many as enter it
#include "coll/edges.hpp"
#include "coll/entries.hpp"

namespace mpisec::coll {
namespace {

template <class BlockTo>
fabric::Task along_edges(fabric::Fabric& fabric, const Call& call, BlockTo block_to) {
    Edges edges(fabric);
    std::vector<Edges::Receiving> receiving;
    for (std::size_t i = 0; i < call.sources.size(); ++i)
        receiving.push_back(edges.receive(call.sources[i], call.from.of(static_cast<int>(i))));
    std::vector<fabric::Pending> sending;
    for (std::size_t i = 0; i < call.destinations.size(); ++i)
        sending.push_back(edges.send(call.destinations[i], block_to(i)));
    for (auto& one : receiving) co_await edges.finish(one);
    for (auto& one : sending) co_await one;
}

fabric::Task naive_allgather(fabric::Fabric& fabric, const Call& call) {
    return along_edges(fabric, call, [&call](std::size_t) { return call.data; });
}
fabric::Task naive_alltoall(fabric::Fabric& fabric, const Call& call) {
    return along_edges(fabric, call, [&call](std::size_t i) { return call.to.of(static_cast<int>(i)); });
}

}  // namespace

const std::vector<Entry>& neighbor_allgather_algorithms() {
    static const std::vector<Entry> all = {{"naive", naive_allgather}};
    return all;
}
const std::vector<Entry>& neighbor_alltoall_algorithms() {
    static const std::vector<Entry> all = {{"naive", naive_alltoall}};
    return all;
}

}  // namespace mpisec::coll
