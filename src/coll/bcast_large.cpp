// Broadcasts of much data. The root puts it into its node's shared memory, so that all ranks there share the
// sealing; on each other node the ranks share carrying and opening, into shared memory, and meet once, at the
// end, to copy it out. m bytes, N nodes, k ranks in each (in the smallest, for scatter-allgather).
//
//   pipeline           a chain of nodes hands on sealed segments, S of them. Rounds N - 2 + S, bytes m / k,
//                      seals and opens S / k
//   pipeline-tree      the same along a binary tree of nodes. Rounds 2 (lg N + S), bytes 2 m / k, S / k
//   scatter-allgather  each other node gets a slice from the root's, then they all-gather ciphertext (van de
//                      Geijn 1994). Rounds N - 1 and N - 2 (ring), bytes m / k, seals and opens N - 1
#include "coll/bcast_large.hpp"

#include <algorithm>
#include <deque>
#include <utility>

#include "coll/leaders.hpp"
#include "coll/spread.hpp"

namespace mpisec::coll {
namespace {

using fabric::Cipher;
using fabric::Fabric;
using fabric::Pending;
using fabric::PlainRoom;
using fabric::Task;

/// Brings what `common` holds on the root's node to `common` on the others, by all ranks of each.
using Between = Task (*)(Fabric& fabric, const Leaders& leaders, PlainRoom common);

Task through_shared_memory(Fabric& fabric, const Call& call, Between between) {
    const Leaders leaders(fabric.topology(), call.root);
    const bool alone = fabric.mates().size() == 1, root = fabric.rank() == call.root;
    const bool roots_node = leaders.place(fabric.node()) == 0;
    const PlainRoom common = alone ? call.data : fabric.shared_plain(call.data.size());
    if (!alone && root) fabric.copy(common, call.data);
    if (!alone && roots_node) co_await fabric.node_barrier();
    co_await between(fabric, leaders, common);
    if (!alone && !roots_node) co_await fabric.node_barrier();
    if (!alone && !root) fabric.copy(call.data, common);
}

/// The n-th of some pieces of equal length, but for the last ones, that make up `all`.
PlainRoom piece(PlainRoom all, std::size_t length, int n) {
    const std::size_t begin = std::min(static_cast<std::size_t>(n) * length, all.size());
    return all.subspan(begin, std::min(length, all.size() - begin));
}

Cipher box_for(Cipher room, PlainRoom plain) {
    return room.part(0, fabric::sealed_bytes(plain.size()));
}

// ---- pipelines
// ----------------------------------------------------------------------------------------------

/// One rank's part of a pipeline through the nodes in a tree where each has `fan` children; with one, a
/// chain.
class Carrier {
  public:
    Carrier(Fabric& fabric, const Leaders& leaders, PlainRoom common, int fan)
        : fabric_(fabric),
          leaders_(leaders),
          common_(common),
          place_(leaders.place(fabric.node())),
          fan_(fan) {
        const std::size_t segments = std::max<std::size_t>(1, (common.size() + length_ - 1) / length_);
        for (int s = fabric.local(); s < static_cast<int>(segments);
             s += static_cast<int>(fabric.mates().size()))
            mine_.push_back(s);
        for (std::size_t i = 0; i < std::min(window, mine_.size()); ++i)
            rooms_.push_back(fabric.cipher(fabric::sealed_bytes(std::min(length_, common.size()))));
    }

    Task run() {
        for (std::size_t i = 0; i < window; ++i) expect(i);
        for (std::size_t i = 0; i < mine_.size(); ++i) {
            if (place_ == 0) {
                fabric_.seal(box(i), plain(i), name(i));
            } else {
                co_await receiving_.front();
                receiving_.pop_front();
            }
            send(i);
            if (place_ != 0) fabric_.open(plain(i), box(i), name(i));
            if (i == 0) continue;
            co_await sent();
            expect(i - 1 + window);
        }
        while (!sending_.empty()) co_await sent();
    }

  private:
    /// Segments that a rank has room for: one that is sent on, one that is opened, the others to come.
    static constexpr std::size_t window = 4;

    /// Who on the node at `place` carries the segment.
    int carrier(int segment, int place) const {
        const auto& members = fabric_.topology().members(leaders_.node(place));
        return members[static_cast<std::size_t>(segment) % members.size()];
    }
    PlainRoom plain(std::size_t i) const { return piece(common_, length_, mine_[i]); }
    Cipher box(std::size_t i) const { return box_for(rooms_[i % window], plain(i)); }
    fabric::Box name(std::size_t i) const {
        return {carrier(mine_[i], 0), static_cast<std::uint32_t>(mine_[i])};
    }

    void expect(std::size_t i) {
        if (place_ == 0 || i >= mine_.size()) return;
        receiving_.push_back(fabric_.receive(carrier(mine_[i], (place_ - 1) / fan_), box(i)));
    }
    void send(std::size_t i) {
        sending_.emplace_back();
        const int nodes = fabric_.topology().nodes();
        for (int child = place_ * fan_ + 1; child <= place_ * fan_ + fan_ && child < nodes; ++child)
            sending_.back().push_back(fabric_.send(carrier(mine_[i], child), box(i)));
    }
    /// The segment that has been on its way for longest has left its room.
    Task sent() {
        for (auto& one : sending_.front()) co_await one;
        sending_.pop_front();
    }

    Fabric& fabric_;
    const Leaders& leaders_;
    const PlainRoom common_;
    const std::size_t length_ = bcast_segment(common_.size());
    const int place_, fan_;
    std::vector<int> mine_;  ///< segments, in order
    std::vector<Cipher> rooms_;
    std::deque<Pending> receiving_;
    std::deque<std::vector<Pending>> sending_;
};

template <int fan>
Task pipeline(Fabric& fabric, const Leaders& leaders, PlainRoom common) {
    Carrier carrier(fabric, leaders, common, fan);
    co_await carrier.run();
}

// ---- scatter and all-gather
// ---------------------------------------------------------------------------------

/// The data in slices: one for each node but the root's, in one part for each lane; rank g of each node
/// carries lane g.
struct Slices {
    Slices(const fabric::Topology& topology, PlainRoom data)
        : all(data), lanes(topology.smallest_node()), nodes(topology.nodes() - 1) {
        const std::size_t pieces = static_cast<std::size_t>(lanes) * static_cast<std::size_t>(nodes);
        length = (data.size() + pieces - 1) / pieces;
    }
    /// For the node at `place`, from 1.
    PlainRoom of(int place, int lane) const { return piece(all, length, (place - 1) * lanes + lane); }

    PlainRoom all;
    int lanes, nodes;
    std::size_t length;
};

Task send_slices(Fabric& fabric, const Slices& slices, std::vector<int> carriers) {
    std::vector<Pending> sending;
    for (int place = 1; place <= slices.nodes; ++place) {
        const PlainRoom slice = slices.of(place, fabric.local());
        const Cipher box = fabric.cipher(fabric::sealed_bytes(slice.size()));
        fabric.seal(box, slice, {fabric.rank(), static_cast<std::uint32_t>(place)});
        sending.push_back(fabric.send(carriers[static_cast<std::size_t>(place)], box));
    }
    for (auto& one : sending) co_await one;
}

Task all_gather_slices(Fabric& fabric, const Slices& slices, std::vector<int> carriers, int place) {
    Group group{{carriers.begin() + 1, carriers.end()}, {}, place - 1};
    for (int of = 1; of <= slices.nodes; ++of)
        group.bytes.push_back(fabric::sealed_bytes(slices.of(of, fabric.local()).size()));
    const Cipher room = fabric.cipher(group.total());
    const Cipher own = room.part(0, group.bytes[static_cast<std::size_t>(group.me)]);
    auto open = [&](int of, Cipher box) {
        fabric.open(slices.of(of, fabric.local()), box, {carriers[0], static_cast<std::uint32_t>(of)});
    };
    co_await fabric.receive(carriers[0], own);
    bool own_opened = false;  // while the others are under way
    co_await ring(fabric, group, room, [&](int index, Cipher box) {
        if (!std::exchange(own_opened, true)) open(place, own);
        open(index + 1, box);
    });
    if (!own_opened) open(place, own);
}

Task scatter_allgather(Fabric& fabric, const Leaders& leaders, PlainRoom common) {
    const fabric::Topology& topology = fabric.topology();
    if (topology.nodes() == 1 || fabric.local() >= topology.smallest_node()) co_return;
    const Slices slices(topology, common);
    std::vector<int> carriers;  // of this rank's lane, by place
    for (int place = 0; place < topology.nodes(); ++place)
        carriers.push_back(topology.members(leaders.node(place))[static_cast<std::size_t>(fabric.local())]);
    const int place = leaders.place(fabric.node());
    if (place == 0)
        co_await send_slices(fabric, slices, carriers);
    else
        co_await all_gather_slices(fabric, slices, carriers, place);
}

}  // namespace

Task bcast_pipeline(Fabric& fabric, const Call& call) {
    return through_shared_memory(fabric, call, pipeline<1>);
}
Task bcast_pipeline_tree(Fabric& fabric, const Call& call) {
    return through_shared_memory(fabric, call, pipeline<2>);
}
Task bcast_scatter_allgather(Fabric& fabric, const Call& call) {
    return through_shared_memory(fabric, call, scatter_allgather);
}

}  // namespace mpisec::coll
