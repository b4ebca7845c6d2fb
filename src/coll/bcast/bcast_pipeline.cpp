// Nodes hand sealed segments on, along a chain or a binary tree; on each node the ranks take turns in carrying
// them. Plaintext goes through shared memory in chunks: the root's node peers seal from it, on other nodes
// all ranks open into it. Two chunks are in it at a time: while one is sealed or opened, ranks copy the
// other, or the root puts the next one there. A node meets once per chunk.
#include <algorithm>
#include <deque>

#include "coll/bcast/bcast_large.hpp"
#include "coll/patterns/leaders.hpp"
#include "coll/patterns/segments.hpp"

namespace mpisec::coll {
namespace {

using fabric::CiphertextBuffer;
using fabric::Fabric;
using fabric::Pending;
using fabric::PlaintextBuffer;
using fabric::Task;

/// How the data is cut, and where it lies in this node.
class Chunks {
  public:
    Chunks(Fabric& fabric, PlaintextBuffer data)
        : data_(data),
          length_(segment_length(fabric, data.size())),
          segments_(std::max<std::size_t>(1, (data.size() + length_ - 1) / length_)),
          per_chunk_(std::max<std::size_t>(8, 2 * fabric.node_peers().size())),
          alone_(fabric.node_peers().size() == 1) {
        if (!alone_) shared_ = fabric.shared_plaintext(std::min(2 * per_chunk_ * length_, data.size()));
    }

    std::size_t chunks() const { return (segments_ + per_chunk_ - 1) / per_chunk_; }
    std::size_t first(std::size_t chunk) const { return std::min(chunk * per_chunk_, segments_); }
    std::size_t segment_bytes() const { return std::min(length_, data_.size()); }

    /// Where a segment is sealed from or opened to.
    PlaintextBuffer segment(std::size_t number) const {
        const PlaintextBuffer mine = piece(data_, length_, number);
        if (alone_) return mine;
        return shared_.subspan(number % (2 * per_chunk_) * length_, mine.size());
    }
    /// A chunk in this rank's own memory and in the node's.
    PlaintextBuffer own(std::size_t chunk) const { return piece(data_, per_chunk_ * length_, chunk); }
    PlaintextBuffer shared(std::size_t chunk) const {
        if (chunk >= chunks()) return {};
        return shared_.subspan(chunk % 2 * per_chunk_ * length_, own(chunk).size());
    }

  private:
    static std::size_t segment_length(const Fabric& fabric, std::size_t bytes) {
        // Ranks of a node share out the segments, so there must be many.
        const int nodes = fabric.topology().nodes();
        if (!fabric.few_parts() || nodes < fabric.topology().ranks()) return bcast_segment(bytes);
        return bcast_segment(bytes, nodes > 2 ? 8 : bytes <= 2 * coll::segment_bytes ? 1 : 2);
    }

    const PlaintextBuffer data_;
    PlaintextBuffer shared_;
    const std::size_t length_, segments_, per_chunk_;
    const bool alone_;
};

/// A copy that is made part by part, between other work.
struct Copying {
    PlaintextBuffer to, from;

    void some(Fabric& fabric, std::size_t bytes) {
        bytes = std::min(bytes, to.size());
        if (bytes == 0) return;
        fabric.copy(to.first(bytes), from.first(bytes));
        to = to.subspan(bytes), from = from.subspan(bytes);
    }
};

/// This rank's segments on their way through it. In the tree each node has `fan` children; with one child it is a
/// chain.
class Carrier {
  public:
    Carrier(Fabric& fabric, const Leaders& leaders, const Chunks& chunks, int fan)
        : fabric_(fabric),
          leaders_(leaders),
          chunks_(chunks),
          place_(leaders.place(fabric.node())),
          fan_(fan) {
        for (std::size_t s = static_cast<std::size_t>(fabric.local()); s < chunks.first(chunks.chunks());
             s += fabric.node_peers().size())
            mine_.push_back(s);
        for (std::size_t i = 0; i < std::min(window, mine_.size()); ++i) {
            rooms_.push_back(fabric.ciphertext(fabric::sealed_bytes(chunks.segment_bytes())));
            expect(i);
        }
    }

    /// Carries the segments of a chunk, with a copy in between.
    Task carry(std::size_t chunk, Copying copying) {
        const std::size_t end = chunks_.first(chunk + 1);
        const auto last = std::lower_bound(mine_.begin(), mine_.end(), end);
        const auto count = static_cast<std::size_t>(last - mine_.begin()) - next_;
        const std::size_t share = copying.to.size() / (count + 1) + 1;
        for (std::size_t i = 0; i < count; ++i) {
            co_await carry_next();
            copying.some(fabric_, share);
        }
        copying.some(fabric_, copying.to.size());
    }
    Task finish() {
        while (!sending_.empty()) co_await sent();
    }

  private:
    /// Segments that a rank has room for: one that is sent on, one that is opened, the others to be received.
    static constexpr std::size_t window = 4;

    /// The rank on the node at `place` that carries the segment.
    int carrier(std::size_t segment, int place) const {
        const auto& members = fabric_.topology().members(leaders_.node(place));
        return members[segment % members.size()];
    }
    PlaintextBuffer plain(std::size_t i) const { return chunks_.segment(mine_[i]); }
    CiphertextBuffer sealed_block(std::size_t i) const {
        return rooms_[i % window].part(0, fabric::sealed_bytes(plain(i).size()));
    }
    fabric::SealedBlock name(std::size_t i) const {
        return {carrier(mine_[i], 0), static_cast<std::uint64_t>(mine_[i])};
    }

    Task carry_next() {
        const std::size_t i = next_++;
        if (place_ == 0) {
            if (fabric_.topology().nodes() == 1) co_return;
            fabric_.seal(sealed_block(i), plain(i), name(i));
        } else {
            co_await receiving_.front();
            receiving_.pop_front();
        }
        send(i);
        if (place_ != 0) fabric_.open(plain(i), sealed_block(i), name(i));
        if (i == 0) co_return;
        co_await sent();
        expect(i - 1 + window);
    }
    void expect(std::size_t i) {
        if (place_ == 0 || i >= mine_.size()) return;
        receiving_.push_back(fabric_.receive(carrier(mine_[i], (place_ - 1) / fan_), sealed_block(i)));
    }
    void send(std::size_t i) {
        sending_.emplace_back();
        const int nodes = fabric_.topology().nodes();
        for (int child = place_ * fan_ + 1; child <= place_ * fan_ + fan_ && child < nodes; ++child)
            sending_.back().push_back(fabric_.send(carrier(mine_[i], child), sealed_block(i)));
    }
    /// Waits until the segment that has been on its way for longest has left its room.
    Task sent() {
        for (auto& one : sending_.front()) co_await one;
        sending_.pop_front();
    }

    Fabric& fabric_;
    const Leaders& leaders_;
    const Chunks& chunks_;
    const int place_, fan_;
    std::vector<std::size_t> mine_;  ///< segments, in order
    std::size_t next_ = 0;           ///< index in mine_
    std::vector<CiphertextBuffer> rooms_;
    std::deque<Pending> receiving_;
    std::deque<std::vector<Pending>> sending_;
};

Task from_roots_node(Fabric& fabric, const Chunks& chunks, Carrier& carrier, bool root) {
    auto in = [&](std::size_t chunk) { return Copying{chunks.shared(chunk), chunks.own(chunk)}; };
    auto out = [&](std::size_t chunk) { return Copying{chunks.own(chunk), chunks.shared(chunk)}; };
    if (root) fabric.copy(chunks.shared(0), chunks.own(0));
    for (std::size_t chunk = 0; chunk < chunks.chunks(); ++chunk) {
        co_await fabric.node_barrier();
        co_await carrier.carry(chunk, root ? in(chunk + 1) : out(chunk));
    }
}

Task to_node(Fabric& fabric, const Chunks& chunks, Carrier& carrier) {
    Copying out;
    for (std::size_t chunk = 0; chunk < chunks.chunks(); ++chunk) {
        co_await carrier.carry(chunk, out);
        co_await fabric.node_barrier();
        out = {chunks.own(chunk), chunks.shared(chunk)};
    }
    out.some(fabric, out.to.size());
}

Task through(Fabric& fabric, const Call& call, int fan) {
    const Leaders leaders(fabric.topology(), call.root);
    const Chunks chunks(fabric, call.data);
    Carrier carrier(fabric, leaders, chunks, fan);
    if (fabric.node_peers().size() == 1)
        for (std::size_t chunk = 0; chunk < chunks.chunks(); ++chunk) co_await carrier.carry(chunk, {});
    else if (leaders.place(fabric.node()) == 0)
        co_await from_roots_node(fabric, chunks, carrier, fabric.rank() == call.root);
    else
        co_await to_node(fabric, chunks, carrier);
    co_await carrier.finish();
}

}  // namespace

Task bcast_pipeline(Fabric& fabric, const Call& call) {
    return through(fabric, call, 1);
}
Task bcast_pipeline_tree(Fabric& fabric, const Call& call) {
    return through(fabric, call, 2);
}

}  // namespace mpisec::coll
