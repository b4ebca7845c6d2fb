// Which algorithm a call runs: the selection that all ranks agreed on at start-up (S7).
#pragma once

#include "coll/selection/selection.hpp"
#include "shim/collective/collective_context.hpp"
#include "shim/collective/collective_plan.hpp"

namespace mpisec::shim {

/// Reads the selection from the settings; ends the job with a sentence when it cannot.
void read_selection();
/// What most communicators will choose from, made while start-up's code and memory are there anyway.
void make_selection();
/// SHA-256 of what decides the choice, first 16 bytes: for the agreement of ranks.
std::array<std::uint8_t, 16> selection_mark();

const coll::Entry& choose_algorithm(const CollectivePlan& plan, CollectiveContext& collective_context,
                                    const fabric::Topology& topology);

}  // namespace mpisec::shim
