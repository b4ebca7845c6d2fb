// Vectors along edges. Long ones travel in segments: one is sealed while the one before is on its way, and
// used while the next one comes.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "coll/patterns/edges.hpp"
#include "coll/patterns/range.hpp"
#include "fabric/task.hpp"

namespace mpisec::coll {

#ifdef MPISEC_TINY_CHUNKS
inline constexpr std::size_t segment_bytes = 20;
#else
inline constexpr std::size_t segment_bytes = 128 * 1024;
#endif
/// So many are under way before one has come, or gone.
inline constexpr std::size_t few_segments = 3;
/// In few parts so many bytes stay whole: on a fast link further segments cost more than they hide, on a slower one sealing
/// and opening these hardly count.
inline constexpr std::size_t whole_block = 8 * segment_bytes;
/// Whole elements, in order. Of segment_bytes each; in few parts, beyond whole_block, one segment, some of up to five, and
/// two at the end.
std::vector<Range> segments(std::size_t bytes, std::size_t element, bool few_parts);

/// Started; each to be awaited, or finished by the edges.
std::vector<fabric::Pending> send_segments(Edges& edges, int to, fabric::Plaintext out, std::size_t element);
std::vector<Edges::Receiving> receive_segments(Edges& edges, int from, fabric::PlaintextBuffer in,
                                               std::size_t element);

/// Of a block that is sent even when it is empty: it stays whole unless it is long and leaves the node.
std::vector<Range> block_segments(const Edges& edges, int peer, std::size_t bytes);
/// Such a block, under way.
void receive_block(Edges& edges, int from, fabric::PlaintextBuffer in,
                   std::vector<Edges::Receiving>& receiving);

/// Such blocks on their way to any number of ranks, several of them to one rank in the order of add(). Of what goes to a rank the
/// first few segments are sealed and sent at once.
class SendingBlocks {
  public:
    explicit SendingBlocks(Edges& edges) : edges_(edges) {}
    void add(int to, fabric::Plaintext block);
    /// Seals and sends another segment to each. Ranks that call it after each segment that they have received, from whom
    /// ever, do not wait for each other for ever: the one that has received fewest waits for one that is on its way.
    void next();
    fabric::Task finish();

  private:
    struct Queue {
        std::vector<fabric::Plaintext> parts;
        std::size_t sent = 0;
    };
    void send_next(int to, Queue& queue);

    Edges& edges_;
    std::map<int, Queue> queues_;  ///< of the ranks that long blocks go to
    std::vector<fabric::Pending> sending_;
};

/// What one rank sends, and what it receives meanwhile.
struct Exchange {
    int to;
    fabric::Plaintext out;
    int from;
    fabric::PlaintextBuffer in;
};

/// Both under way, to be finished. What is empty is neither sent nor received.
class Passing {
  public:
    /// The first `ahead` segments are sealed and sent at once, a further one whenever one has come: while one
    /// is sealed, others travel. Whatever else the two ranks send each other goes before or after all of
    /// these, unless all of them are sent at once.
    static constexpr std::size_t few = few_segments, all = ~std::size_t{0};
    Passing(Edges& edges, const Exchange& exchange, std::size_t element, std::size_t ahead = few);
    /// `arrived` is told each segment of `in` once it is there and the same segment of `out` is gone.
    fabric::Task finish(std::function<void(Range)> arrived);

  private:
    void send_next();

    Edges& edges_;
    int to_;
    fabric::Plaintext out_;
    std::vector<Range> parts_out_, parts_;  ///< of `out`, of `in`
    std::vector<Edges::Receiving> receiving_;
    std::vector<fabric::Pending> sending_;
};

/// Such a block each way.
fabric::Task exchange_segments(Edges& edges, int to, fabric::Plaintext out, int from,
                               fabric::PlaintextBuffer in);

}  // namespace mpisec::coll
