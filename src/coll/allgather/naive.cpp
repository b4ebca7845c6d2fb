// Naive (Lahijani et al. section IV.A): ciphertext everywhere, also within nodes. The other algorithms improve on
// r_d = p - 1.
#include "coll/allgather/allgather.hpp"
#include "coll/patterns/spread.hpp"

namespace mpisec::coll {

fabric::Task allgather_naive(fabric::Fabric& fabric, const Blocks& blocks) {
    Group group;
    group.me = fabric.rank();
    for (int rank = 0; rank < fabric.topology().ranks(); ++rank) {
        group.ranks.push_back(rank);
        group.bytes.push_back(fabric::sealed_bytes(blocks.of(rank).size()));
    }
    const fabric::CiphertextBuffer room = fabric.ciphertext(group.total());
    const fabric::PlaintextBuffer mine = blocks.of(fabric.rank());
    fabric.seal(room.part(0, fabric::sealed_bytes(mine.size())), mine, {fabric.rank(), 0});
    co_await doubling(fabric, group, room, [&](int rank, fabric::CiphertextBuffer sealed_block) {
        fabric.open(blocks.of(rank), sealed_block, {rank, 0});
    });
}

}  // namespace mpisec::coll
