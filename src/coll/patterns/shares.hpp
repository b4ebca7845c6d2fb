// Reductions of long vectors among a few ranks in two phases (Rabenseifner 2004): each member first reduces a
// share of the vector, then the shares are brought together. Each phase moves (size - 1) / size of the
// vector, however many members there are.
#pragma once

#include "coll/patterns/schedule.hpp"

namespace mpisec::coll {

/// By member: the range that is reduced there in the end. Empty for members that rest.
using Shares = std::vector<Range>;

/// Recursive halving, nearest members first so that operands stay in order. lg size rounds, one more when
/// size is not a power of two.
Schedule recursive_halving(const Members& members, std::size_t bytes, std::size_t element);
Shares shares_of_halving(const Members& members, std::size_t bytes, std::size_t element);

/// Ring: size - 1 rounds. Operands are combined in another order for each share, so the operation must commute.
Schedule reducing_ring(const Members& members, std::size_t bytes, std::size_t element);
Shares shares_of_ring(const Members& members, std::size_t bytes, std::size_t element);

enum class Spread { ring, doubling };
/// Every member gets all shares: each share is sealed once, handed on as it is, and opened by all. No two members
/// may share a node. Sealed blocks get an index that no edge has: that of an edge from the rank to itself. `chunk`
/// counts the calls within the collective.
fabric::Task spread_shares(Members members, Partial& partial, Shares shares, Spread by, std::uint64_t chunk);

/// One member gets all shares.
fabric::Task gather_shares(Edges& edges, Members members, Partial& partial, Shares shares, int at);

}  // namespace mpisec::coll
