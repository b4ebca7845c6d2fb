// The algorithms of each collective, defined in its own file.
#pragma once

#include <vector>

#include "coll/collective.hpp"

namespace mpisec::coll {

#define COLLECTIVE(name, NAME) const std::vector<Entry>& name##_algorithms();
#include "base/collectives.def"

}  // namespace mpisec::coll
