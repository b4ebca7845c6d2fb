// The selection that a process uses: MPISEC_TUNING's table or the built-in one, with the algorithms that
// MPISEC_<COLLECTIVE> names in force. A library of its own, because it needs the settings.
#pragma once

#include "base/embedded.hpp"
#include "coll/selection.hpp"
#include "config/settings.hpp"

namespace mpisec::coll {

/// One: default_selection.toml.
std::span<const Embedded> built_in_selections();
inline std::string_view built_in_selection() {
    return built_in_selections().front().text;
}

Result<Selection> selection_of(const config::Settings& settings);

}  // namespace mpisec::coll
