#include "shim/startup/node_cards.hpp"

#include <algorithm>
#include <cstring>
#include <set>

#include "shim/runtime/errors.hpp"
#include "shim/startup/card_exchange.hpp"

namespace mpisec::shim {
namespace {

constexpr const char* forged =
    "; something between the nodes changes messages, or MPIsec is not loaded on every rank.";

bool have_own_ids(const NodeCards& cards) {
    std::set<std::array<std::uint8_t, 16>> ids;
    return std::ranges::all_of(cards,
                               [&](const NodeCard& card) { return ids.insert(card.hello.node_id).second; });
}

/// Checks the card that has this rank: it has this rank's node id and, if this rank leads it, this rank's own hello.
void require_own_card(const NodeCards& cards, const Hello& own) {
    const auto card = std::ranges::find_if(
        cards, [&](const NodeCard& each) { return std::ranges::binary_search(each.ranks, own.rank); });
    const bool unchanged = card != cards.end() && card->hello.node_id == own.node_id &&
                           (card->hello.rank != own.rank || std::memcmp(&card->hello, &own, sizeof own) == 0);
    if (!unchanged) abort_job(std::string("The settings that this rank sent came back changed") + forged);
}

}  // namespace

keys::Digest digest(const NodeCards& cards) {
    return keys::sha256(wire::encode(cards));
}

std::vector<Hello> leaders_of(const NodeCards& cards) {
    std::vector<Hello> leaders;
    for (const NodeCard& card : cards) leaders.push_back(card.hello);
    return leaders;
}

std::string name_of(const NodeCards& cards, std::int32_t rank) {
    for (const NodeCard& card : cards)
        if (std::ranges::binary_search(card.ranks, rank)) {
            Hello hello = card.hello;
            hello.rank = rank;
            return name_of(hello);
        }
    return "rank " + std::to_string(rank);
}

NodeCards exchange_cards(const Hello& own, int size, MPI_Comm comm, Nodes nodes,
                         const config::Settings& settings) {
    // Nothing of the program's can be under way on the communicator yet.
    NodeCards cards = gather_cards(own, size, comm, nodes, settings);
    require_own_card(cards, own);
    std::size_t ranks = 0;
    for (const NodeCard& card : cards) ranks += card.ranks.size();
    const std::vector<std::int32_t> node = wire::node_map(cards, size);
    const auto missing = std::ranges::find(node, -1);
    const bool once = missing == node.end() && ranks == node.size() &&
                      (nodes == Nodes::by_id ? have_own_ids(cards) : cards.size() == node.size());
    if (!once)
        abort_job("The settings of " +
                  (missing == node.end() ? "other ranks" : "rank " + std::to_string(missing - node.begin())) +
                  std::string(" did not arrive as they were sent") + forged);
    return cards;
}

}  // namespace mpisec::shim
