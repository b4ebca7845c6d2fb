// What the nodes of a job tell each other at start-up: a card for each, made of the hellos of its ranks on their way. So
// what travels grows with the nodes, and little with the ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "wire/hello.hpp"

namespace mpisec::wire {

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
/// Both together; what is in both counts once. Nothing when a hello is not the same in both.
std::optional<NodeCards> merge(const NodeCards& some, const NodeCards& others, Nodes nodes);

/// docs/protocol.md, "Hellos and cards".
std::vector<std::uint8_t> encode(const NodeCards& cards);
/// Nothing unless they are cards of ranks below `size`, with each rank in one at most and each node id on one.
std::optional<NodeCards> decode(std::span<const std::uint8_t> bytes, int size, Nodes nodes);
/// So long is what encode() makes of cards of so many ranks, at most.
std::size_t longest_encoding(int ranks);

/// Per rank the number of its node, 0 … nodes-1 by lowest rank; -1 where no card has it.
std::vector<std::int32_t> node_map(const NodeCards& cards, int size);

}  // namespace mpisec::wire
