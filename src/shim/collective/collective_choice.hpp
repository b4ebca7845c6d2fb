// Which algorithm a call runs: the selection that all ranks agreed on at start-up (S7).
#pragma once

#include "coll/selection/selection.hpp"
#include "shim/collective/collective_context.hpp"
#include "shim/collective/collective_plan.hpp"

namespace mpisec::shim {

/// Reads the selection from the settings; ends the job with a sentence when it cannot.
void read_selection();
/// Makes the selection that most communicators will choose from, while start-up's code and memory are in use anyway.
void make_selection();
/// The first 16 bytes of SHA-256 over all that decides the choice, on which the ranks must agree.
std::array<std::uint8_t, 16> selection_mark();

const coll::Entry& choose_algorithm(const CollectivePlan& plan, CollectiveContext& collective_context,
                                    const fabric::Topology& topology);

}  // namespace mpisec::shim
