// One algorithm of a collective on a simulated cluster: what `mpisec sim` prints and `mpisec tune --simulate`
// chooses by.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "coll/collective.hpp"
#include "coll/selection/selection.hpp"
#include "fabric/sim/sim.hpp"

namespace mpisec::cli {

/// `ranks` over `nodes`: "block" or "cyclic".
fabric::Topology placed(int ranks, int nodes, const std::string& placement);

/// What the size of a call means: that of a block or of the whole vector; a multiple of unit(). A barrier has none.
bool has_size(coll::Collective collective);
const char* meaning_of_size(coll::Collective collective);
std::uint64_t unit(coll::Collective collective);  ///< bytes of an element

/// No bytes are moved: times and counts do not depend on them. None when the algorithm does not suit.
Result<std::optional<fabric::sim::Report>> simulate(coll::Collective collective, const coll::Entry& algorithm,
                                                    const fabric::Topology& topology, std::uint64_t bytes,
                                                    const fabric::sim::ClusterModel& model,
                                                    std::uint64_t seed);

/// The algorithm that `selection` chooses for the call, on the built-in model.
Result<fabric::sim::Report> simulate(coll::Collective collective, const coll::Selection& selection,
                                     const fabric::Topology& topology, std::uint64_t bytes);

}  // namespace mpisec::cli
