// Reductions among a few ranks that know each other: what the collectives that reduce are built of. Operands
// are combined in the group's order. Each member calls it at its own place. Vectors without elements send
// nothing.
#pragma once

#include <functional>
#include <vector>

#include "coll/edges.hpp"
#include "coll/partial.hpp"
#include "fabric/task.hpp"

namespace mpisec::coll {

/// Ranks in an order that all of them know.
struct Among {
    std::vector<int> ranks;
    int me;  ///< index in ranks

    int size() const { return static_cast<int>(ranks.size()); }
    int rank(int index) const { return ranks[static_cast<std::size_t>(index)]; }
};

/// All ranks of the cluster.
Among everybody(const fabric::Fabric& fabric);
/// The rank with this place in each node, by node.
Among across_nodes(const fabric::Fabric& fabric, int local);

/// Long vectors travel in segments: one is sealed while the one before is on its way, and combined while the
/// next one comes.
inline constexpr std::size_t segment_bytes = 128 * 1024;
std::vector<Range> segments(std::size_t bytes, std::size_t element);
std::vector<fabric::Pending> send_segments(Edges& edges, int to, fabric::Plain out, std::size_t element);
std::vector<Edges::Receiving> receive_segments(Edges& edges, int from, fabric::PlainRoom in,
                                               std::size_t element);

/// Sends `out`, if there is any, and receives `in`, if there is any. `arrived` is told each segment of `in`
/// once it is there and the same segment of `out` is gone.
fabric::Task pass(Edges& edges, int to, fabric::Plain out, int from, fabric::PlainRoom in,
                  std::size_t element, std::function<void(Range)> arrived);

/// Binomial tree: the first member has the result, others anything. ceil(lg size) rounds.
fabric::Task reduce_to_first(Edges& edges, Among among, Partial& partial);

/// Recursive doubling, the first 2 (size - 2^k) members folded into every second one before: all have the
/// result, with the same bits. lg size rounds, two more when size is no power of two.
fabric::Task reduce_to_all(Edges& edges, Among among, Partial& partial);

/// Inclusive prefixes: round by round each member hands all that it has to the one at twice the distance.
/// ceil(lg size) rounds.
fabric::Task prefix(Edges& edges, Among among, Partial& partial);

/// Exclusive prefixes, into `before`; the first member's is not written. `partial` has anything afterwards.
fabric::Task prefix_before(Edges& edges, Among among, Partial& partial, fabric::PlainRoom before);

}  // namespace mpisec::coll
