// What the environment tells about the launcher that started this process.
#pragma once

#include <optional>
#include <string>

#include "base/error.hpp"
#include "cli/family.hpp"

namespace mpisec::cli {

struct Launcher {
    std::string name;              ///< for people; empty: no launcher was found
    std::optional<Family> family;  ///< the family whose processes it starts, where that is certain
};

/// False in processes that their launcher numbers, and not with 0. For what one process of a job says for all.
bool may_be_rank_0();

/// An error when two launchers' traces contradict each other.
Result<Launcher> find_launcher();

}  // namespace mpisec::cli
