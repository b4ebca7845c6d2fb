#pragma once

#include <vector>

#include "config/settings.hpp"
#include "shim/startup/hello.hpp"

namespace mpisec::shim {

/// Collective over `comm`, on which nothing else travels meanwhile: the hellos of all ranks as they arrived, by rank.
std::vector<Hello> gather_hellos(const Hello& own, int size, MPI_Comm comm, const config::Settings& settings);

}  // namespace mpisec::shim
