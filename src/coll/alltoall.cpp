// All-to-all: a block of m bytes from every rank to every rank.
//
//   naive  pairwise exchange, each block sealed that goes to another node. p - 1 rounds, m bytes each; a rank
//          seals and opens as many boxes as there are ranks on other nodes
#include "coll/edges.hpp"
#include "coll/entries.hpp"

namespace mpisec::coll {
namespace {

fabric::Task naive(fabric::Fabric& fabric, const Call& call) {
    const int p = fabric.topology().ranks(), me = fabric.rank();
    Edges edges(fabric);
    for (int step = 1; step < p; ++step) {
        const int to = (me + step) % p, from = (me - step + p) % p;
        co_await edges.exchange(to, call.to.of(to), from, call.from.of(from));
    }
}

}  // namespace

const std::vector<Entry>& alltoall_algorithms() {
    static const std::vector<Entry> all = {{"naive", naive}};
    return all;
}

}  // namespace mpisec::coll
