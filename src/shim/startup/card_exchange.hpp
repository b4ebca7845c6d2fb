#pragma once

#include "config/settings.hpp"
#include "shim/startup/node_cards.hpp"

namespace mpisec::shim {

/// Collective over `comm`, on which nothing else travels during the call. Returns the cards of all nodes as they arrived.
NodeCards gather_cards(const Hello& own, int size, MPI_Comm comm, Nodes nodes,
                       const config::Settings& settings);

}  // namespace mpisec::shim
