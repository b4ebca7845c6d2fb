// Broadcast of m bytes.
//
//   naive  the root seals once, the box goes down a binomial tree of all ranks, everybody opens. Rounds
//          ceil(lg p), at most m ceil(lg p) bytes per rank, 1 seal, 1 open per rank
#include "coll/entries.hpp"

namespace mpisec::coll {
namespace {

fabric::Task naive(fabric::Fabric& fabric, const Call& call) {
    const int p = fabric.topology().ranks(), place = (fabric.rank() - call.root + p) % p;
    const fabric::Cipher box = fabric.cipher(fabric::sealed_bytes(call.data.size()));
    int below = 1;  // the children are at place + 1, 2, 4 ... below this
    if (place == 0) {
        if (p > 1) fabric.seal(box, call.data, {call.root, 0});
        while (below < p) below *= 2;
    } else {
        while (!(place & below)) below *= 2;
        co_await fabric.receive((place - below + call.root) % p, box);
    }
    std::vector<fabric::Pending> sending;
    for (int step = below / 2; step > 0; step /= 2)
        if (place + step < p) sending.push_back(fabric.send((place + step + call.root) % p, box));
    if (place != 0) fabric.open(call.data, box, {call.root, 0});
    for (auto& one : sending) co_await one;
}

}  // namespace

const std::vector<Entry>& bcast_algorithms() {
    static const std::vector<Entry> all = {{"naive", naive}};
    return all;
}

}  // namespace mpisec::coll
