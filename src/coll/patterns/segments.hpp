// Vectors along edges. Long ones travel in segments: a segment is sealed while the one before is on its way, and
// used while the next one arrives.
#pragma once

#include <functional>
#include <map>
#include <unordered_map>
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
/// The number of segments that are under way before one has been received, or sent.
inline constexpr std::size_t few_segments = 3;
/// Where there are to be few parts, this many bytes stay whole: on a fast link further segments cost more than they hide, on a slower
/// one the time to seal and open these bytes hardly counts.
inline constexpr std::size_t whole_block = 8 * segment_bytes;
/// The parts of a vector, in whole elements and in order. They have segment_bytes each; with few parts, vectors beyond whole_block have
/// one of segment_bytes, some of up to five times that, and a last one of up to twice that.
std::vector<Range> segments(std::size_t bytes, std::size_t element, bool few_parts);

/// Start to send or receive segments, each of which the edges must finish.
std::vector<Edges::Sending> send_segments(Edges& edges, int to, fabric::Plaintext out, std::size_t element);
std::vector<Edges::Receiving> receive_segments(Edges& edges, int from, fabric::PlaintextBuffer in,
                                               std::size_t element);

/// The parts of a block that is sent even when it is empty: it stays whole unless it is long and leaves the node.
std::vector<Range> block_segments(const Edges& edges, int peer, std::size_t bytes);
/// Such blocks on their way here from any number of ranks, several from one rank in the order of add(). Receives for few segments from each
/// rank are posted at a time.
class ReceivingBlocks {
  public:
    explicit ReceivingBlocks(Edges& edges) : edges_(edges) {}
    void add(int from, fabric::PlaintextBuffer block);
    /// Receives a segment from each rank in turn, and calls `arrived` after each. In turn, because a sender waits for its oldest segment: that
    /// one must not wait here until another rank has sent everything.
    fabric::Task finish(std::function<void()> arrived = [] {});

  private:
    struct Queue {
        int from;
        std::vector<fabric::PlaintextBuffer> parts = {};
        std::vector<Edges::Receiving> posted = {};
    };
    void post_next(Queue& queue);

    Edges& edges_;
    std::vector<Queue> queues_;              ///< one for each rank, in the order in which they came
    std::unordered_map<int, int> queue_of_;  ///< by rank
};

/// Such blocks on their way to any number of ranks; several blocks to one rank are sent in the order of add(). The first few segments
/// to each rank are sealed and sent at once.
class SendingBlocks {
  public:
    explicit SendingBlocks(Edges& edges) : edges_(edges) {}
    void add(int to, fabric::Plaintext block);
    /// Seals and sends another segment to each rank. Ranks that call this after each segment that they receive, from
    /// whichever rank, do not wait for each other for ever: the rank that has received fewest segments waits for one that is
    /// on its way, because all take segments from their senders in turn (ReceivingBlocks).
    void next();
    fabric::Task finish();
    /// The same with few segments to each rank under way at a time, for ranks that only receive.
    fabric::Task finish_few();

  private:
    struct Queue {
        std::vector<fabric::Plaintext> parts;
        std::size_t sent = 0;
    };
    struct Sent {
        int to;
        Edges::Sending sending;
    };
    void send_next(int to, Queue& queue);

    Edges& edges_;
    std::map<int, Queue> queues_;  ///< of the ranks that long blocks go to
    std::vector<Sent> sent_;
};

/// What one rank sends, and what it receives at the same time.
struct Exchange {
    int to;
    fabric::Plaintext out;
    int from;
    fabric::PlaintextBuffer in;
};

/// An exchange under way, which must be finished. Empty vectors are neither sent nor received.
class Passing {
  public:
    /// The first `ahead` segments are sealed and sent at once, a further one whenever one has arrived: while one is sealed, others travel.
    /// Receives for one more than these are posted at a time. Whatever else the two ranks send each other must go before or after all of
    /// these, unless all of them are sent at once.
    static constexpr std::size_t few = few_segments, all = ~std::size_t{0};
    Passing(Edges& edges, const Exchange& exchange, std::size_t element, std::size_t ahead = few);
    struct Parts {
        std::vector<Range> out, in;
    };
    Passing(Edges& edges, const Exchange& exchange, Parts parts, std::size_t ahead);
    /// Calls `arrived` for each segment of `in` once that has arrived and the same segment of `out` has been sent.
    fabric::Task finish(std::function<void(Range)> arrived);

  private:
    void send_next();
    void receive_next();

    Edges& edges_;
    Exchange exchange_;
    Parts parts_;
    std::vector<Edges::Sending> sending_;
    std::vector<Edges::Receiving> receiving_;
};

/// Exchanges blocks, each of which is sent even when it is empty (block_segments).
fabric::Task exchange_segments(Edges& edges, int to, fabric::Plaintext out, int from,
                               fabric::PlaintextBuffer in);

}  // namespace mpisec::coll
