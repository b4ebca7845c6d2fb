#include "wire/node_cards.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "base/bytes.hpp"

namespace mpisec::wire {
namespace {

constexpr std::size_t head_bytes = sizeof(Hello) + 4 + 4;  // hello, bound apart, runs

/// `count` ranks from `first` on, `step` apart: one run for ranks placed in blocks, and one for ranks dealt out in turn.
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

using Key = std::pair<std::array<std::uint8_t, 16>, std::int32_t>;

Key key_of(const NodeCard& card, Nodes nodes) {
    if (nodes == Nodes::by_id) return {card.hello.node_id, 0};
    return {{}, card.hello.rank};
}

/// False when a hello is not the same in both.
bool combine(NodeCard& card, const NodeCard& other) {
    if (card.hello.kernel != other.hello.kernel || card.hello.cpu_set != other.hello.cpu_set ||
        other.bound_apart)
        card.bound_apart = true;
    if (other.hello.rank == card.hello.rank && std::memcmp(&other.hello, &card.hello, sizeof card.hello) != 0)
        return false;
    if (other.hello.rank < card.hello.rank) card.hello = other.hello;
    std::vector<std::int32_t> ranks;
    std::ranges::set_union(card.ranks, other.ranks, std::back_inserter(ranks));
    card.ranks = std::move(ranks);
    return true;
}

/// Reads one card; false where the bytes are not a card. `left`: ranks that can still follow.
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

}  // namespace

std::optional<NodeCards> merge(const NodeCards& some, const NodeCards& others, Nodes nodes) {
    std::map<Key, NodeCard> by_key;
    for (const NodeCards* cards : {&some, &others})
        for (const NodeCard& card : *cards) {
            const auto [found, is_new] = by_key.try_emplace(key_of(card, nodes), card);
            if (!is_new && !combine(found->second, card)) return std::nullopt;
        }
    NodeCards merged;
    for (auto& [key, card] : by_key) merged.push_back(std::move(card));
    std::ranges::sort(merged, {}, [](const NodeCard& card) { return card.hello.rank; });
    return merged;
}

NodeCards cards_of(const std::vector<Hello>& hellos, Nodes nodes) {
    NodeCards cards;
    for (const Hello& hello : hellos) cards.push_back({hello, {hello.rank}});
    return merge(cards, {}, nodes).value();
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

std::optional<NodeCards> decode(std::span<const std::uint8_t> bytes, int size, Nodes nodes) {
    NodeCards cards;
    std::set<Key> keys;
    std::vector<bool> listed(static_cast<std::size_t>(size));
    auto left = listed.size();
    while (!bytes.empty()) {
        NodeCard card;
        if (!read(bytes, size, left, card)) return std::nullopt;
        if (!cards.empty() && card.hello.rank <= cards.back().hello.rank) return std::nullopt;
        if (!keys.insert(key_of(card, nodes)).second) return std::nullopt;
        for (std::int32_t rank : card.ranks) {
            if (listed[static_cast<std::size_t>(rank)]) return std::nullopt;
            listed[static_cast<std::size_t>(rank)] = true;
        }
        cards.push_back(std::move(card));
    }
    return cards;
}

std::size_t longest_encoding(int ranks) {
    return static_cast<std::size_t>(ranks) * (head_bytes + run_bytes);
}

std::vector<std::int32_t> node_map(const NodeCards& cards, int size) {
    std::vector<std::int32_t> node(static_cast<std::size_t>(size), -1);
    for (std::int32_t number = 0; const NodeCard& card : cards) {
        for (std::int32_t rank : card.ranks) node[static_cast<std::size_t>(rank)] = number;
        ++number;
    }
    return node;
}

}  // namespace mpisec::wire
