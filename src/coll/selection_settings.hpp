// The selection that a process uses: MPISEC_TUNING's table and the built-in ones behind it, with the
// algorithms that MPISEC_<COLLECTIVE> names in force. A library of its own, because it needs the settings.
#pragma once

#include "base/embedded.hpp"
#include "coll/selection.hpp"
#include "config/settings.hpp"

namespace mpisec::coll {

/// shared: the ranks of each node have one CPU between them, or several nodes do. What one of them seals or
/// opens keeps the others from running, and what is done once per node wins. own: every other job.
enum class Cpus : std::uint8_t { own, shared };

/// default_selection.toml, shared_cpus_selection.toml: by Cpus.
std::span<const Embedded> built_in_selections();
inline std::string_view built_in_selection(Cpus cpus = Cpus::own) {
    return built_in_selections()[static_cast<std::size_t>(cpus)].text;
}

/// The site's rules, if it has a table; the built-in ones for shared CPUs, where they are; the built-in ones.
Result<Selection> selection_of(const config::Settings& settings, Cpus cpus = Cpus::own);

}  // namespace mpisec::coll
