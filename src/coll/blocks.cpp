#include "coll/blocks.hpp"

namespace mpisec::coll {

bool Blocks::one_run(Ranks ranks) const {
    for (std::size_t i = 1; i < ranks.size(); ++i) {
        const auto before = static_cast<std::size_t>(ranks[i - 1]), here = static_cast<std::size_t>(ranks[i]);
        if (offset[before] + size[before] != offset[here]) return false;
    }
    return true;
}

fabric::PlaintextBuffer Blocks::room(fabric::Fabric& fabric, Ranks ranks) const {
    if (ranks.empty()) return {};
    if (one_run(ranks)) return {base + offset[static_cast<std::size_t>(ranks.front())], bytes(ranks)};
    return fabric.plaintext(bytes(ranks));
}

fabric::Plaintext Blocks::pack(fabric::Fabric& fabric, Ranks ranks) const {
    const fabric::PlaintextBuffer packed = room(fabric, ranks);
    if (!one_run(ranks)) gather(fabric, ranks, packed);
    return packed;
}

void Blocks::gather(fabric::Fabric& fabric, Ranks ranks, fabric::PlaintextBuffer packed) const {
    std::size_t at = 0;
    for (int rank : ranks) {
        const fabric::PlaintextBuffer block = of(rank);
        fabric.copy(packed.subspan(at, block.size()), block);
        at += block.size();
    }
}

void Blocks::unpack(fabric::Fabric& fabric, Ranks ranks, fabric::Plaintext packed) const {
    if (ranks.empty() || packed.data() == base + offset[static_cast<std::size_t>(ranks.front())]) return;
    std::size_t at = 0;
    for (int rank : ranks) {
        const fabric::PlaintextBuffer block = of(rank);
        fabric.copy(block, packed.subspan(at, block.size()));
        at += block.size();
    }
}

}  // namespace mpisec::coll
