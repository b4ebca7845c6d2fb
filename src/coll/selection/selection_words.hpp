// The words of a selection table.
#pragma once

#include <string_view>

#include "coll/selection/selection.hpp"

namespace mpisec::coll {

inline constexpr std::array<std::string_view, 3> placements = {"block", "cyclic", "other"};

inline std::string_view name(Placement placement) {
    return placements[static_cast<std::size_t>(placement)];
}

/// "naive, o-ring, o-rd": the algorithms there are.
inline std::string names_of_algorithms(Collective collective) {
    std::string names;
    for (const Entry& entry : algorithms(collective)) {
        if (!names.empty()) names += ", ";
        names += entry.name;
    }
    return names;
}

}  // namespace mpisec::coll
