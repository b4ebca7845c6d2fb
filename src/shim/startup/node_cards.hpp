// The cards of a job's nodes (wire/node_cards.hpp), as a rank gets them and compares them.
//
// They travel in clear and unauthenticated, like the hellos in them. Afterwards the ranks of a node show each other their
// hellos in the node's memory, and its leader compares the node's card with the card that these hellos make
// (node_proof.hpp); the leaders compare the hash of all cards in their handshakes (key_exchange.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "keys/hkdf.hpp"
#include "shim/startup/hello.hpp"
#include "wire/node_cards.hpp"

namespace mpisec::shim {

using wire::NodeCard;
using wire::NodeCards;
using wire::Nodes;

keys::Digest digest(const NodeCards& cards);

/// The hellos of the leaders.
std::vector<Hello> leaders_of(const NodeCards& cards);
/// "rank 3 (host)"
std::string name_of(const NodeCards& cards, std::int32_t rank);

/// Collective over `comm`, on which nothing else travels during the call. Returns the cards of all nodes, with every rank
/// in one of them. Ends the job when this rank's own card comes back changed.
NodeCards exchange_cards(const Hello& own, int size, MPI_Comm comm, Nodes nodes,
                         const config::Settings& settings);

}  // namespace mpisec::shim
