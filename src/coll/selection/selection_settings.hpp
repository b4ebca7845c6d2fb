// The selection that a process uses: MPISEC_TUNING's table and the built-in ones behind it, with the
// algorithms that MPISEC_<COLLECTIVE> names in force. A library of its own, because it needs the settings.
#pragma once

#include "coll/selection/built_in_rules.hpp"
#include "config/settings.hpp"

namespace mpisec::coll {

/// The site's rules, if it has a table; then the built-in ones for shared CPUs, where CPUs are shared; then the other built-in ones.
Result<Selection> selection_of(const config::Settings& settings, Cpus cpus = Cpus::own);

}  // namespace mpisec::coll
