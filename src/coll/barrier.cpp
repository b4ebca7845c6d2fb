// Barrier: nobody leaves before everybody has come.
//
//   naive  dissemination among all ranks. Rounds ceil(lg p), empty messages; each that crosses nodes is a
//          sealed box, so that nobody but a rank can say that the others have come
#include "coll/edges.hpp"
#include "coll/entries.hpp"

namespace mpisec::coll {
namespace {

fabric::Task naive(fabric::Fabric& fabric, const Call&) {
    const int p = fabric.topology().ranks(), me = fabric.rank();
    Edges edges(fabric);
    for (int distance = 1; distance < p; distance *= 2)
        co_await edges.exchange((me + distance) % p, {}, (me - distance + p) % p, {});
}

}  // namespace

const std::vector<Entry>& barrier_algorithms() {
    static const std::vector<Entry> all = {{"naive", naive}};
    return all;
}

}  // namespace mpisec::coll
