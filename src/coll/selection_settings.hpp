// The selection that a process uses: MPISEC_TUNING's table or the built-in one, with the algorithms that
// MPISEC_<COLLECTIVE> names in force. A library of its own, because it needs the settings.
#pragma once

#include "coll/selection.hpp"
#include "config/settings.hpp"

namespace mpisec::coll {

/// TOML (default_selection.toml).
std::string_view built_in_selection();

Result<Selection> selection_of(const config::Settings& settings);

}  // namespace mpisec::coll
