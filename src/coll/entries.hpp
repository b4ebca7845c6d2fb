// The algorithms of each collective, defined in its own file.
#pragma once

#include <span>

#include "coll/collective.hpp"

namespace mpisec::coll {

#define COLLECTIVE(name, NAME) std::span<const Entry> name##_algorithms();
#include "base/collectives.def"

}  // namespace mpisec::coll
