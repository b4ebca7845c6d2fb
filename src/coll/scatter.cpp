// Scatter of the root's blocks to the ranks, m bytes each.
//
//   naive  the root to everybody, sealed if it is on another node. 1 round, at the root p - 1 messages and
//          seals; 1 open per rank
#include "coll/edges.hpp"
#include "coll/entries.hpp"

namespace mpisec::coll {
namespace {

fabric::Task naive(fabric::Fabric& fabric, const Call& call) {
    Edges edges(fabric);
    if (fabric.rank() != call.root) {
        co_await edges.finish(edges.receive(call.root, call.data));
        co_return;
    }
    std::vector<fabric::Pending> sending;
    for (int rank = 0; rank < fabric.topology().ranks(); ++rank)
        if (rank != call.root) sending.push_back(edges.send(rank, call.to.of(rank)));
    for (auto& one : sending) co_await one;
}

}  // namespace

const std::vector<Entry>& scatter_algorithms() {
    static const std::vector<Entry> all = {{"naive", naive}};
    return all;
}

}  // namespace mpisec::coll
