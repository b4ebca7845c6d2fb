// What the nodes of a job tell each other at start-up: a card for each node, made of the hellos of its ranks on their way. So the amount of
// data grows with the number of nodes, and little with the number of ranks.
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
    bool bound_apart = false;         ///< its ranks do not all have the same kernel and affinity mask
};

/// In ascending order of the ranks of their hellos.
using NodeCards = std::vector<NodeCard>;

/// Ranks with equal node ids are proposed as a node; or every process is a node of its own.
enum class Nodes : std::uint8_t { by_id, of_one_process };

NodeCards cards_of(const std::vector<Hello>& hellos, Nodes nodes);
/// Merges both; what is in both counts once. Nothing when a hello is not the same in both.
std::optional<NodeCards> merge(const NodeCards& some, const NodeCards& others, Nodes nodes);

/// docs/protocol.md, "Hellos and cards".
std::vector<std::uint8_t> encode(const NodeCards& cards);
/// Nothing unless the bytes are cards of ranks below `size`, with each rank in at most one card and each node id on only one.
std::optional<NodeCards> decode(std::span<const std::uint8_t> bytes, int size, Nodes nodes);
/// The most bytes that encode() makes of cards of `ranks` ranks.
std::size_t longest_encoding(int ranks);

/// For each rank the number of its node, 0 … nodes-1 in the order of their lowest ranks; -1 for a rank that no card has.
std::vector<std::int32_t> node_map(const NodeCards& cards, int size);

}  // namespace mpisec::wire
