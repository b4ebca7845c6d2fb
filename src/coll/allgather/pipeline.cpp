// Pipeline: the ranks with the same place in their nodes form a ring, in which sealed blocks travel in
// segments: while one is sealed or opened, those before and after it are on their way. Every segment is
// sealed once and opened once per node, by the rank that receives it; a node's ranks take each other's segments from
// shared memory, node by node. For long blocks, and where a rank has a node to itself. There are as many
// rings as the smallest node has ranks.
#include <algorithm>
#include <deque>
#include <optional>

#include "coll/allgather/allgather.hpp"
#include "coll/allgather/shared_blocks.hpp"
#include "coll/patterns/nodes.hpp"
#include "coll/patterns/segments.hpp"

namespace mpisec::coll {
namespace {

using fabric::CiphertextBuffer;
using fabric::Fabric;
using fabric::PlaintextBuffer;
using fabric::Task;

/// A segment of a rank's block, and the name of its sealed block.
struct Piece {
    int rank;
    Range range;
    fabric::SealedBlock sealed_block;
};

/// One rank's part in its ring, which carries the blocks of those ranks of every node whose places are the same modulo
/// the number of rings. `Plain`: where blocks are sealed from and opened to.
template <class Plain>
class Lane {
  public:
    Lane(Fabric& fabric, const Plain& plain) : fabric_(fabric), plain_(plain) {
        const int nodes = fabric.topology().nodes();
        if (nodes == 1) return;
        add_pieces(going_, 0);
        own_ = going_.size();
        for (int step = 1; step < nodes; ++step) {
            add_pieces(coming_, step);
            ends_.push_back(coming_.size());
            if (step + 1 < nodes) add_pieces(going_, step);
        }
        sealed_blocks_.resize(own_ + coming_.size());
        for (std::size_t i = 0; i < ahead; ++i) expect();
        send_until(ahead);
    }

    /// Runs until the blocks from `step` nodes away, 1 to nodes - 1, are in their places.
    Task take(int step) {
        while (taken_ < ends_[static_cast<std::size_t>(step - 1)]) {
            co_await receiving_.front();
            receiving_.pop_front();
            const std::size_t i = taken_++;
            expect();
            send_until(taken_ + ahead);
            CiphertextBuffer& sealed_block = sealed_blocks_[own_ + i];
            fabric_.open(bytes(coming_[i]), sealed_block, coming_[i].sealed_block);
            if (own_ + i >= going_.size()) fabric_.give_back(sealed_block);  // handed on to nobody
            co_await finish_sends();
        }
        // A rank that waits for its node after this must hold nothing back that another node waits for.
        if (!alone_) send_until(going_.size());
    }
    Task finish() {
        while (sent_ < going_.size()) {
            send_until(sent_ + 1);
            co_await finish_sends();
        }
        most_sending_ = 0;
        co_await finish_sends();
    }

  private:
    static constexpr std::size_t ahead = 3;  ///< segments sent, and expected, before others have arrived
    static constexpr std::size_t any_number = ~std::size_t{0};

    int node_at(int distance) const {
        const int nodes = fabric_.topology().nodes();
        return (fabric_.node() + distance + nodes) % nodes;
    }
    int neighbour(int distance) const {
        return fabric_.topology().members(node_at(distance))[static_cast<std::size_t>(fabric_.local())];
    }
    /// Adds what the lane carries of the node that is `step` nodes before this one.
    void add_pieces(std::vector<Piece>& pieces, int step) const {
        const fabric::Topology& topology = fabric_.topology();
        const Ranks members = topology.members(node_at(-step));
        std::uint64_t index = 0;
        for (auto place = static_cast<std::size_t>(fabric_.local()); place < members.size();
             place += static_cast<std::size_t>(topology.smallest_node()))
            for (const Range& range : segments(plain_.of(members[place]).size(), 1, fabric_.few_parts()))
                pieces.push_back({members[place], range, {neighbour(-step), index++}});
    }
    PlaintextBuffer bytes(const Piece& piece) const { return piece.range.of(plain_.of(piece.rank)); }
    CiphertextBuffer room_for(const Piece& piece) {
        return fabric_.ciphertext(fabric::sealed_bytes(piece.range.size));
    }

    void expect() {
        if (expected_ == coming_.size()) return;
        CiphertextBuffer& room = sealed_blocks_[own_ + expected_];
        room = room_for(coming_[expected_++]);
        receiving_.push_back(fabric_.receive(neighbour(-1), room));
    }
    /// Sends in the order that the next node expects; of other nodes' segments, only those that have arrived.
    void send_until(std::size_t count) {
        for (; sent_ < std::min({count, going_.size(), own_ + taken_}); ++sent_) {
            const Piece& piece = going_[sent_];
            if (sent_ < own_) {
                sealed_blocks_[sent_] = room_for(piece);
                fabric_.seal(sealed_blocks_[sent_], bytes(piece), piece.sealed_block);
            }
            sending_.push_back(fabric_.send(neighbour(1), sealed_blocks_[sent_]));
        }
    }
    /// Gives back the room of what has left, and, for a rank that has its node to itself, waits until few segments are under way. (A rank
    /// that others of its node wait for must not wait for its neighbour here, which may wait for its own node.)
    Task finish_sends() {
        while (!sending_.empty() && (sending_.size() > most_sending_ || sending_.front().await_ready())) {
            co_await sending_.front();
            sending_.pop_front();
            fabric_.give_back(sealed_blocks_[finished_++]);
        }
    }

    Fabric& fabric_;
    const Plain& plain_;
    /// The pieces to send: the node's own, then those that are handed on. All pieces to receive.
    std::vector<Piece> going_, coming_;
    std::size_t own_ = 0;
    std::vector<std::size_t> ends_;                ///< of coming_, by step
    std::vector<CiphertextBuffer> sealed_blocks_;  ///< of the node's own, then of those received
    std::deque<fabric::Pending> receiving_, sending_;
    std::size_t expected_ = 0, taken_ = 0, sent_ = 0, finished_ = 0;
    const bool alone_ = fabric_.node_peers().size() == 1;
    std::size_t most_sending_ = alone_ ? 2 * ahead : any_number;  ///< before this rank waits for the oldest
};

/// For a rank that has its node to itself.
Task alone(Fabric& fabric, const Blocks& blocks) {
    Lane lane(fabric, blocks);
    for (int step = 1; step < fabric.topology().nodes(); ++step) co_await lane.take(step);
    co_await lane.finish();
}

}  // namespace

Task allgather_pipeline(Fabric& fabric, const Blocks& blocks) {
    const fabric::Topology& topology = fabric.topology();
    if (fabric.node_peers().size() == 1) {
        co_await alone(fabric, blocks);
        co_return;
    }
    const SharedBlocks shared(fabric, blocks, 1);
    fabric.copy(shared.of(fabric.rank()), blocks.of(fabric.rank()));
    co_await fabric.node_barrier();
    std::optional<Lane<SharedBlocks>> lane;
    if (fabric.local() < topology.smallest_node()) lane.emplace(fabric, shared);
    for (int step = 0; step < topology.nodes(); ++step) {
        if (lane && step > 0) co_await lane->take(step);
        if (step > 0) co_await fabric.node_barrier();
        const int node = node_after(topology, fabric.node(), -step);
        for (int rank : topology.members(node))
            if (rank != fabric.rank()) fabric.copy(blocks.of(rank), shared.of(rank));
    }
    if (lane) co_await lane->finish();
}

}  // namespace mpisec::coll
