// What the nodes of a job tell each other at start-up: a card for each, made of the hellos of its ranks on their way. So
// what travels grows with the nodes, and little with the ranks.
//
// Cards travel in clear and unauthenticated, like the hellos in them. Afterwards the ranks of a node show each other their
// hellos in its memory, and its leader compares its card with what they make (node_proof.hpp); the leaders compare the hash of all cards in their
// handshakes (key_exchange.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "keys/hkdf.hpp"
#include "shim/startup/hello.hpp"

namespace mpisec::shim {

struct NodeCard {
    Hello hello;                      ///< of its lowest rank, which leads the node
    std::vector<std::int32_t> ranks;  ///< ascending
    bool bound_apart = false;         ///< they have not all one kernel and affinity mask
};

/// Ascending by the ranks of their hellos.
using NodeCards = std::vector<NodeCard>;

/// Ranks with equal node ids are proposed as a node; or every process is a node of its own.
enum class Nodes : std::uint8_t { by_id, of_one_process };

NodeCards cards_of(const std::vector<Hello>& hellos, Nodes nodes);
/// Both together; what is in both counts once. Ends the job when it is not the same in both.
NodeCards merge(const NodeCards& some, const NodeCards& others, Nodes nodes);

/// docs/protocol.md, "Hellos and cards".
std::vector<std::uint8_t> encode(const NodeCards& cards);
/// Nothing unless they are cards of ranks below `size`, each in one at most.
std::optional<NodeCards> decode(std::span<const std::uint8_t> bytes, int size);
/// So long is what encode() makes of cards of so many ranks, at most.
std::size_t longest_encoding(int ranks);

keys::Digest digest(const NodeCards& cards);

/// Per rank the number of its node, 0 … nodes-1 by lowest rank; -1 where no card has it.
std::vector<std::int32_t> node_map(const NodeCards& cards, int size);
/// The hellos of the leaders.
std::vector<Hello> leaders_of(const NodeCards& cards);
/// "rank 3 (host)"
std::string name_of(const NodeCards& cards, std::int32_t rank);

/// Collective over `comm`, on which nothing else travels meanwhile: the cards of all nodes, with every rank in one of
/// them. Ends the job when this rank's own comes back changed.
NodeCards exchange_cards(const Hello& own, int size, MPI_Comm comm, Nodes nodes,
                         const config::Settings& settings);

}  // namespace mpisec::shim
