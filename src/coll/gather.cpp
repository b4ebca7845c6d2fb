// Gather of the ranks' blocks at the root, m bytes each.
//
//   naive  everybody to the root, sealed if it is on another node. 1 round, at the root p - 1 messages and
//          opens; 1 seal per rank
#include "coll/edges.hpp"
#include "coll/entries.hpp"

namespace mpisec::coll {
namespace {

fabric::Task naive(fabric::Fabric& fabric, const Call& call) {
    Edges edges(fabric);
    if (fabric.rank() != call.root) {
        co_await edges.send(call.root, call.data);
        co_return;
    }
    std::vector<Edges::Receiving> receiving;
    for (int rank = 0; rank < fabric.topology().ranks(); ++rank)
        if (rank != call.root) receiving.push_back(edges.receive(rank, call.from.of(rank)));
    for (auto& one : receiving) co_await edges.finish(one);
}

}  // namespace

const std::vector<Entry>& gather_algorithms() {
    static const std::vector<Entry> all = {{"naive", naive}};
    return all;
}

}  // namespace mpisec::coll
