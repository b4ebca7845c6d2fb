#include "shim/startup/node_cards.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <utility>

#include "base/bytes.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/startup/card_exchange.hpp"

namespace mpisec::shim {
namespace {

constexpr std::size_t head_bytes = sizeof(Hello) + 4 + 4;  // hello, bound apart, runs

/// `count` ranks from `first` on, `step` apart: one run for ranks placed in blocks, and for those dealt out in turn.
struct Run {
    std::int32_t first, count, step;
};
constexpr std::size_t run_bytes = 12;

std::vector<Run> runs_of(const std::vector<std::int32_t>& ranks) {
    std::vector<Run> runs;
    for (std::int32_t rank : ranks) {
        if (!runs.empty()) {
            Run& last = runs.back();
            const std::int32_t step = rank - (last.first + (last.count - 1) * last.step);
            if (last.count == 1) last.step = step;
            if (step == last.step) {
                ++last.count;
                continue;
            }
        }
        runs.push_back({rank, 1, 1});
    }
    return runs;
}

constexpr const char* forged =
    "; something between the nodes changes messages, or MPIsec is not loaded on every rank.";

using Key = std::pair<std::array<std::uint8_t, 16>, std::int32_t>;

Key key_of(const NodeCard& card, Nodes nodes) {
    if (nodes == Nodes::by_id) return {card.hello.place, 0};
    return {{}, card.hello.rank};
}

void combine(NodeCard& card, const NodeCard& other) {
    if (card.hello.kernel != other.hello.kernel || card.hello.cpu_set != other.hello.cpu_set ||
        other.bound_apart)
        card.bound_apart = true;
    if (other.hello.rank == card.hello.rank && std::memcmp(&other.hello, &card.hello, sizeof card.hello) != 0)
        abort_job("The settings of " + name_of(card.hello) + " arrived in two versions" + forged);
    if (other.hello.rank < card.hello.rank) card.hello = other.hello;
    std::vector<std::int32_t> ranks;
    std::ranges::set_union(card.ranks, other.ranks, std::back_inserter(ranks));
    card.ranks = std::move(ranks);
}

/// Reads one card; false where the bytes are none. `left`: ranks that may still come.
bool read(std::span<const std::uint8_t>& bytes, int size, std::size_t& left, NodeCard& card) {
    if (bytes.size() < head_bytes) return false;
    std::memcpy(&card.hello, bytes.data(), sizeof card.hello);
    const auto apart = load_le<std::uint32_t>(bytes.data() + sizeof(Hello));
    const auto runs = load_le<std::uint32_t>(bytes.data() + sizeof(Hello) + 4);
    bytes = bytes.subspan(head_bytes);
    if (apart > 1 || runs > bytes.size() / run_bytes) return false;
    card.bound_apart = apart == 1;
    for (std::uint32_t i = 0; i < runs; ++i, bytes = bytes.subspan(run_bytes)) {
        const auto first = load_le<std::int32_t>(bytes.data());
        const auto count = load_le<std::int32_t>(bytes.data() + 4),
                   step = load_le<std::int32_t>(bytes.data() + 8);
        if (first < 0 || count < 1 || step < 1 || static_cast<std::size_t>(count) > left) return false;
        if (first + (std::int64_t{count} - 1) * step >= size) return false;
        if (!card.ranks.empty() && first <= card.ranks.back()) return false;
        for (std::int32_t n = 0; n < count; ++n) card.ranks.push_back(first + n * step);
        left -= static_cast<std::size_t>(count);
    }
    return !card.ranks.empty() && card.hello.rank == card.ranks.front();
}

/// The card that has this rank, which it would have made itself of its own hello were it alone in it.
void require_own_card(const NodeCards& cards, const Hello& own) {
    const auto card = std::ranges::find_if(
        cards, [&](const NodeCard& each) { return std::ranges::binary_search(each.ranks, own.rank); });
    const bool unchanged = card != cards.end() && card->hello.place == own.place &&
                           (card->hello.rank != own.rank || std::memcmp(&card->hello, &own, sizeof own) == 0);
    if (!unchanged) abort_job(std::string("The settings that this rank sent came back changed") + forged);
}

}  // namespace

NodeCards merge(const NodeCards& some, const NodeCards& others, Nodes nodes) {
    std::map<Key, NodeCard> by_key;
    for (const NodeCards* cards : {&some, &others})
        for (const NodeCard& card : *cards) {
            const auto [found, is_new] = by_key.try_emplace(key_of(card, nodes), card);
            if (!is_new) combine(found->second, card);
        }
    NodeCards merged;
    for (auto& [key, card] : by_key) merged.push_back(std::move(card));
    std::ranges::sort(merged, {}, [](const NodeCard& card) { return card.hello.rank; });
    return merged;
}

NodeCards cards_of(const std::vector<Hello>& hellos, Nodes nodes) {
    NodeCards cards;
    for (const Hello& hello : hellos) cards.push_back({hello, {hello.rank}});
    return merge(cards, {}, nodes);
}

std::vector<std::uint8_t> encode(const NodeCards& cards) {
    std::vector<std::uint8_t> bytes;
    const auto add = [&](const auto& value) {
        const auto* from = reinterpret_cast<const std::uint8_t*>(&value);
        bytes.insert(bytes.end(), from, from + sizeof value);
    };
    for (const NodeCard& card : cards) {
        const std::vector<Run> runs = runs_of(card.ranks);
        add(card.hello);
        add(static_cast<std::uint32_t>(card.bound_apart));
        add(static_cast<std::uint32_t>(runs.size()));
        for (const Run& run : runs) add(run.first), add(run.count), add(run.step);
    }
    return bytes;
}

std::optional<NodeCards> decode(std::span<const std::uint8_t> bytes, int size) {
    NodeCards cards;
    auto left = static_cast<std::size_t>(size);
    while (!bytes.empty()) {
        NodeCard card;
        if (!read(bytes, size, left, card)) return std::nullopt;
        if (!cards.empty() && card.hello.rank <= cards.back().hello.rank) return std::nullopt;
        cards.push_back(std::move(card));
    }
    return cards;
}

std::size_t longest_encoding(int ranks) {
    return static_cast<std::size_t>(ranks) * (head_bytes + run_bytes);
}

keys::Digest digest(const NodeCards& cards) {
    return keys::sha256(encode(cards));
}

std::vector<std::int32_t> node_map(const NodeCards& cards, int size) {
    std::vector<std::int32_t> node(static_cast<std::size_t>(size), -1);
    for (std::int32_t number = 0; const NodeCard& card : cards) {
        for (std::int32_t rank : card.ranks) node[static_cast<std::size_t>(rank)] = number;
        ++number;
    }
    return node;
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
    const std::vector<std::int32_t> node = node_map(cards, size);
    const auto missing = std::ranges::find(node, -1);
    const bool once =
        missing == node.end() && ranks == node.size() && merge(cards, {}, nodes).size() == cards.size();
    if (!once)
        abort_job("The settings of " +
                  (missing == node.end() ? "other ranks" : "rank " + std::to_string(missing - node.begin())) +
                  std::string(" did not arrive as they were sent") + forged);
    return cards;
}

}  // namespace mpisec::shim
