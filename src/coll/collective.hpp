// The collectives, what one rank gives to a call of one, and the algorithms that there are for each.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "coll/blocks.hpp"
#include "fabric/fabric.hpp"
#include "fabric/task.hpp"

namespace mpisec::coll {

enum class Collective : std::uint8_t {
#define COLLECTIVE(name, NAME) name,
#include "base/collectives.def"
};
inline constexpr int collectives = 0
#define COLLECTIVE(name, NAME) +1
#include "base/collectives.def"
    ;
std::string_view name(Collective collective);  ///< as in the table and, in capitals, in MPISEC_<NAME>
std::optional<Collective> collective_by_name(std::string_view name);

/// One rank's side of one call. All data is packed: runs of bytes without gaps between elements. Members that are not
/// named for a collective are empty.
///
///   barrier         nothing
///   bcast           data: the root's data, before the call on the root, after it on all ranks; sizes are equal
///   gather          root: from, its own block in place; others: data, their block. After: from is complete
///   scatter         root: to, its own block is not moved; others: data, room for their block
///   allgather       from, the rank's own block in place
///   alltoall        to, from; the rank's own block is not moved
///   reduce          data: the rank's vector; after the call the result on the root, anything on others
///   allreduce       data: the rank's vector; after the call the result
///   reduce_scatter  data: the rank's whole vector; from.size: bytes of each rank's part, whose sum is
///                   data.size(). After: the rank's own part of data is its result, the rest is anything
///   scan, exscan    data: the rank's vector; after the call the result, but anything on rank 0 of exscan
///   neighbor_…      to[i] for destinations[i], from[i] from sources[i], by place in these lists; a rank may
///                   be in them several times, the rank itself too, and blocks between two ranks match in order.
///                   neighbor_allgather: data goes to all destinations
struct Call {
    int root = 0;
    fabric::PlaintextBuffer data;
    Blocks to, from;
    std::vector<int> destinations, sources;
    const fabric::Reduction* reduction = nullptr;
    /// All blocks of all ranks have one size (the variants without v and w). Otherwise a rank knows only the sizes
    /// of what it sends and receives itself, except in allgather and reduce_scatter, where all ranks know all sizes.
    bool equal_blocks = true;
};

/// Runs on every rank. `fabric` and `call` must outlive the task. Results are as MPI promises unless the
/// fabric has failed.
using Algorithm = fabric::Task (*)(fabric::Fabric& fabric, const Call& call);

struct Entry {
    std::string_view name;
    Algorithm run;
    /// Whether the algorithm can serve such a call. All ranks must get the same answer, so it must not depend on what
    /// only this rank knows. Null: always.
    bool (*suits)(const fabric::Topology& topology, const Call& call) = nullptr;
    std::string_view alias = {};  ///< an earlier name, which settings and tables still accept
    /// Any two ranks have messages for each other, whose number grows with the square of the number of ranks.
    bool every_pair = false;
};

/// The algorithms of a collective; the first one serves every call.
std::span<const Entry> algorithms(Collective collective);
/// By name or alias; null when there is none.
const Entry* find_algorithm(Collective collective, std::string_view name);

/// Bytes of a block (allgather, alltoall, gather, scatter, reduce_scatter) or of the vector, where all ranks know the same
/// number: the choice of an algorithm may depend on it. None when ranks know only their own sizes.
std::optional<std::size_t> agreed_bytes(Collective collective, const Call& call);

}  // namespace mpisec::coll
