// Each other node gets a slice from the root's node, then these nodes all-gather ciphertext (van de Geijn 1994). A slice
// has one part for each lane: rank g of each node carries lane g. On the root's node the ranks take the
// plaintext from shared memory, on the other nodes they put it there.
#include <utility>

#include "coll/bcast/bcast_large.hpp"
#include "coll/patterns/leaders.hpp"
#include "coll/patterns/spread.hpp"

namespace mpisec::coll {
namespace {

using fabric::CiphertextBuffer;
using fabric::PlaintextBuffer;
using fabric::Task;

class Slices {
  public:
    Slices(fabric::Fabric& fabric, const Leaders& leaders, PlaintextBuffer all)
        : fabric_(fabric),
          leaders_(leaders),
          all_(all),
          lanes_(fabric.topology().smallest_node()),
          nodes_(fabric.topology().nodes() - 1),
          place_(leaders.place(fabric.node())) {
        const auto parts = static_cast<std::size_t>(lanes_) * static_cast<std::size_t>(nodes_);
        if (parts > 0) length_ = (all.size() + parts - 1) / parts;
    }

    Task run() {
        if (nodes_ == 0 || fabric_.local() >= lanes_) return {};
        return place_ == 0 ? scatter() : gather();
    }

  private:
    /// With smaller slices fewer rounds are better; with larger ones it is better to open some while others travel.
    static constexpr std::size_t ring_from = 16 << 10;

    /// This lane's rank and its part of the data, for the node at `place`, which is not the root's.
    int rank(int place) const {
        return fabric_.topology().members(leaders_.node(place))[static_cast<std::size_t>(fabric_.local())];
    }
    PlaintextBuffer part(int place) const {
        return piece(all_, length_, static_cast<std::size_t>((place - 1) * lanes_ + fabric_.local()));
    }
    std::size_t sealed_block_bytes(int place) const { return fabric::sealed_bytes(part(place).size()); }
    fabric::SealedBlock name(int place) const { return {rank(0), static_cast<std::uint64_t>(place)}; }

    Task scatter() {
        std::vector<fabric::Pending> sending;
        for (int place = 1; place <= nodes_; ++place) {
            const CiphertextBuffer sealed_block = fabric_.ciphertext(sealed_block_bytes(place));
            fabric_.seal(sealed_block, part(place), name(place));
            sending.push_back(fabric_.send(rank(place), sealed_block));
        }
        for (auto& one : sending) co_await one;
    }

    Task gather() {
        Group group{{}, {}, place_ - 1};
        for (int place = 1; place <= nodes_; ++place) {
            group.ranks.push_back(rank(place));
            group.bytes.push_back(sealed_block_bytes(place));
        }
        const CiphertextBuffer room = fabric_.ciphertext(group.total()),
                               own = room.part(0, sealed_block_bytes(place_));
        bool own_opened = false;  // while the others are under way
        auto open_own = [&] {
            if (!std::exchange(own_opened, true)) fabric_.open(part(place_), own, name(place_));
        };
        auto arrived = [&](int index, CiphertextBuffer sealed_block) {
            open_own();
            fabric_.open(part(index + 1), sealed_block, name(index + 1));
        };
        co_await fabric_.receive(rank(0), own);
        if (length_ * static_cast<std::size_t>(lanes_) < ring_from)
            co_await doubling(fabric_, group, room, arrived);
        else
            co_await ring(fabric_, group, room, arrived);
        open_own();
    }

    fabric::Fabric& fabric_;
    const Leaders& leaders_;
    const PlaintextBuffer all_;
    const int lanes_, nodes_, place_;
    std::size_t length_ = 0;
};

}  // namespace

Task bcast_scatter_allgather(fabric::Fabric& fabric, const Call& call) {
    const Leaders leaders(fabric.topology(), call.root);
    const bool alone = fabric.node_peers().size() == 1, root = fabric.rank() == call.root;
    const bool roots_node = leaders.place(fabric.node()) == 0;
    const PlaintextBuffer common = alone ? call.data : fabric.shared_plaintext(call.data.size());
    if (!alone && root) fabric.copy(common, call.data);
    if (!alone && roots_node) co_await fabric.node_barrier();
    Slices slices(fabric, leaders, common);
    co_await slices.run();
    if (!alone && !roots_node) co_await fabric.node_barrier();
    if (!alone && !root) fabric.copy(call.data, common);
}

}  // namespace mpisec::coll
