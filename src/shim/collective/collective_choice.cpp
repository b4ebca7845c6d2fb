#include "shim/collective/collective_choice.hpp"

#include <algorithm>
#include <optional>

#include "coll/selection/selection_settings.hpp"
#include "keys/hkdf.hpp"
#include "shim/collective/collective_context.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/runtime/state.hpp"

namespace mpisec::shim {

struct Selections {
    std::array<std::optional<coll::Selection>, 2> made;  ///< by coll::Cpus
};

namespace {

/// Start-up finds out which of the two applies. Each is made when it is first asked for; from MPI_Init on, under the
/// Guard.
const coll::Selection& selection(coll::Cpus cpus) {
    std::optional<coll::Selection>& one = process.selections->made[static_cast<std::size_t>(cpus)];
    if (!one) {
        Result<coll::Selection> read = coll::selection_of(state.settings, cpus);
        if (!read) abort_job(read.error().message);
        one = std::move(*read);
    }
    return *one;
}

bool is_site_s_own() {
    return !state.settings.tuning.empty() ||
           std::ranges::any_of(state.settings.algorithm,
                               [](const std::string& wanted) { return wanted != "auto"; });
}

}  // namespace

void read_selection() {
    if (!is_site_s_own()) return;
    state.messages = selection(coll::Cpus::own).messages();
    selection(coll::Cpus::shared);
}

void make_selection() {
    selection(state.world.cpus);
}

std::array<std::uint8_t, 16> selection_mark() {
    std::string text;
    for (const coll::Cpus cpus : {coll::Cpus::own, coll::Cpus::shared})
        // The text of a whole selection is expensive to make, and without a table of the site's own the build's checksum stands for it.
        text += state.settings.tuning.empty() ? std::to_string(coll::compiled_table(cpus).checksum) + "\n"
                                              : selection(cpus).text();
    for (const std::string& wanted : state.settings.algorithm) text += wanted + "\n";
    const keys::Digest digest = keys::sha256(keys::as_bytes(text));
    std::array<std::uint8_t, 16> mark;
    std::copy_n(digest.begin(), mark.size(), mark.begin());
    return mark;
}

const coll::Entry& choose_algorithm(const CollectivePlan& plan, CollectiveContext& collective_context,
                                    const fabric::Topology& topology) {
    // Between two groups every rank is a node of its own, and no algorithm that knows nodes is needed.
    if (!plan.participants.empty()) return coll::algorithms(plan.collective).front();
    CollectiveContext::Choice& known = collective_context.choices[static_cast<std::size_t>(plan.collective)];
    if (!known) {
        // With one rank on each node nothing can be done once for several ranks.
        const coll::Cpus cpus = topology.ranks() > topology.nodes() ? state.world.cpus : coll::Cpus::own;
        known = selection(cpus).for_topology(plan.collective, topology);
    }
    return known->choose(topology, plan.call);
}

}  // namespace mpisec::shim
