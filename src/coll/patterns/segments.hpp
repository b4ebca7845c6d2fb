// Vectors along edges. Long ones travel in segments: one is sealed while the one before is on its way, and
// used while the next one comes.
#pragma once

#include <functional>
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
/// Whole elements, in order. Of segment_bytes each; with a fast cipher, where each costs more than it hides, halves, or
/// from four segments on one segment, some of up to five, and two at the end.
std::vector<Range> segments(std::size_t bytes, std::size_t element, bool fast_cipher);

/// Started; each to be awaited, or finished by the edges.
std::vector<fabric::Pending> send_segments(Edges& edges, int to, fabric::Plaintext out, std::size_t element);
std::vector<Edges::Receiving> receive_segments(Edges& edges, int from, fabric::PlaintextBuffer in,
                                               std::size_t element);

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
    static constexpr std::size_t few = 3, all = ~std::size_t{0};
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

/// All of it.
fabric::Task exchange_segments(Edges& edges, int to, fabric::Plaintext out, int from,
                               fabric::PlaintextBuffer in);

}  // namespace mpisec::coll
