#include "coll/among.hpp"
#include "coll/entries.hpp"

namespace mpisec::coll {
namespace {

/// All ranks, from the root on when the order does not matter.
Among tree(const fabric::Fabric& fabric, const Call& call) {
    Among all = everybody(fabric);
    if (!call.reduction->commutes) return all;
    for (int& rank : all.ranks) rank = (rank + call.root) % all.size();
    all.me = (fabric.rank() - call.root + all.size()) % all.size();
    return all;
}

fabric::Task naive(fabric::Fabric& fabric, const Call& call) {
    Edges edges(fabric);
    const Among all = tree(fabric, call);
    const int first = all.rank(0);
    Partial mine = partial(fabric, *call.reduction, call.data);
    co_await reduce_to_first(edges, all, mine);
    if (first != call.root && fabric.rank() == first) co_await edges.send(call.root, mine.value);
    if (fabric.rank() != call.root) co_return;
    if (first != call.root)
        co_await edges.finish(edges.receive(first, call.data));
    else
        mine.settle(call.data);
}

}  // namespace

const std::vector<Entry>& reduce_algorithms() {
    static const std::vector<Entry> all = {{"naive", naive}};
    return all;
}

}  // namespace mpisec::coll
