#include "shim/collective_choice.hpp"

#include <algorithm>

#include "coll/selection_settings.hpp"
#include "keys/hkdf.hpp"
#include "shim/collective_space.hpp"
#include "shim/errors.hpp"
#include "shim/state.hpp"

namespace mpisec::shim {
namespace {

coll::Selection selection;

}  // namespace

void read_selection() {
    Result<coll::Selection> read = coll::selection_of(state.settings);
    if (!read) abort_job(read.error().message);
    selection = std::move(*read);
}

std::array<std::uint8_t, 16> selection_mark() {
    std::string text = selection.text();
    for (const std::string& wanted : state.settings.algorithm) text += wanted + "\n";
    const keys::Digest digest = keys::sha256(keys::as_bytes(text));
    std::array<std::uint8_t, 16> mark;
    std::copy_n(digest.begin(), mark.size(), mark.begin());
    return mark;
}

const coll::Entry& choose_algorithm(const CollectivePlan& plan, CollectiveSpace& space,
                                    const fabric::Topology& topology) {
    // Between groups: what has no node in common needs no algorithm that knows nodes.
    if (!plan.participants.empty()) return coll::algorithms(plan.collective).front();
    CollectiveSpace::Choice& known = space.choices[static_cast<std::size_t>(plan.collective)];
    if (!known) known = selection.for_topology(plan.collective, topology);
    return known->choose(topology, plan.call);
}

}  // namespace mpisec::shim
