// The built-in selection tables, compiled: every rank of every job needs them, and reading them as TOML would
// take longer than the rest of MPIsec's work in MPI_Init.
#pragma once

#include <cstdint>
#include <span>

#include "coll/selection/selection.hpp"

namespace mpisec::coll {

/// shared: the ranks of each node have one CPU between them, or several nodes do. While one of these ranks seals or
/// opens, the others cannot run, so work that is done once per node wins. own: every other job.
enum class Cpus : std::uint8_t { own, shared };

/// A Rule that needs no code to be initialized.
struct CompiledRule {
    Collective collective;
    std::uint8_t algorithm;  ///< index among algorithms(collective)
    Interval nodes;
    Interval ranks_per_node;
    std::optional<Interval> bytes;
    std::optional<Placement> placement;
};

struct CompiledTable {
    std::span<const CompiledRule> rules;
    std::uint64_t checksum;  ///< of the rules' text: tells builds apart (FNV-1a)
};

/// default_selection.toml or shared_cpus_selection.toml. Defined in the source that compile_selection.cpp writes.
const CompiledTable& compiled_table(Cpus cpus);

/// The table's rules alone.
Selection built_in_selection(Cpus cpus = Cpus::own);

}  // namespace mpisec::coll
