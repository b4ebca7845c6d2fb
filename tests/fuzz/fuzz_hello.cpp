// The cards of start-up, as they arrive in clear: only those that agree in every setting pass, whatever a
// card says of itself; the rest ends the job with a sentence that a terminal can show.
#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "check.hpp"
#include "fake_mpi.hpp"
#include "shim/runtime/state.hpp"
#include "shim/startup/bootstrap_card.hpp"
#include "shim/startup/bootstrap_cores.hpp"
#include "wire/frame.hpp"

using namespace mpisec;
using namespace mpisec::shim;

namespace {

Card genuine(int rank) {
    Card card;
    card.protocol = protocol_version;
    card.wire_version = wire::version;
    std::memcpy(card.version.data(), "1", 1);
    std::memcpy(card.host.data(), "node", 4);
    card.nonce.fill(static_cast<std::uint8_t>(rank + 1));
    card.place.fill(static_cast<std::uint8_t>(rank / 2));
    card.rank = rank;
    card.segment = 131072;
    card.rekey_messages = 1u << 28;
    card.rekey_bytes = 1ull << 38;
    card.kernel = 7;
    card.cpu_set = 9;
    card.cpus = 2;
    return card;
}

void check_sentences() {
    for (char c : fuzz::take_said()) FUZZ_CHECK(c == '\n' || (c >= ' ' && c <= '~'));
}

/// What must be alike on all ranks (docs/protocol.md).
bool agree(const Card& one, const Card& other) {
    return one.protocol == other.protocol && one.wire_version == other.wire_version &&
           std::strncmp(one.version.data(), other.version.data(), one.version.size()) == 0 &&
           one.policy == other.policy && one.threshold == other.threshold && one.segment == other.segment &&
           one.rekey_messages == other.rekey_messages && one.rekey_bytes == other.rekey_bytes &&
           one.selection == other.selection;
}

void check_nodes(const std::vector<Card>& cards) {
    const std::vector<std::int32_t> node = node_map(cards);
    FUZZ_CHECK(node.size() == cards.size());
    std::int32_t nodes = 0;
    for (std::size_t r = 0; r < cards.size(); ++r) {
        FUZZ_CHECK(node[r] >= 0 && node[r] <= nodes);  // numbered by their lowest rank
        nodes = std::max(nodes, node[r] + 1);
        for (std::size_t other = 0; other < r; ++other)
            FUZZ_CHECK((node[r] == node[other]) == (cards[r].place == cards[other].place));
    }
    for (const Card& card : cards) (void)crowded(cards, card.rank);
    (void)cpus_of_job(cards, node);
    const std::uint64_t threshold = pipeline_threshold(cards);
    FUZZ_CHECK(threshold == cards[0].threshold || threshold == 64 * 1024 || threshold == 512 * 1024);
}

/// Cards of `ranks` with what the network makes of them.
std::vector<Card> arriving(fuzz::Input& input, int ranks) {
    std::vector<Card> cards;
    for (int r = 0; r < ranks; ++r) cards.push_back(genuine(r));
    auto* bytes = reinterpret_cast<std::uint8_t*>(cards.data());
    while (!input.empty()) {
        const auto at = input.take<std::uint16_t>();
        bytes[at % (cards.size() * sizeof(Card))] = input.take<std::uint8_t>();
    }
    return cards;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input(data, size);
    const int ranks = 1 + input.take<std::uint8_t>() % 6, rank = input.take<std::uint8_t>() % ranks;
    state.world.rank = rank;
    fuzz::install_fake_mpi(ranks);
    fuzz::reset_fake_mpi();
    const std::vector<Card> sent = arriving(input, ranks);
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(sent.data());
    fuzz::set_gathered({bytes, bytes + sent.size() * sizeof(Card)});
    const Card own = genuine(rank);
    bool good = std::memcmp(&own, &sent[static_cast<std::size_t>(rank)], sizeof own) == 0;
    for (int r = 0; r < ranks; ++r) good = good && sent[static_cast<std::size_t>(r)].rank == r;
    for (const Card& card : sent) good = good && agree(card, sent[0]);
    try {
        const std::vector<Card> cards = exchange_cards(own, ranks, {});
        for (const Card& card : cards) FUZZ_CHECK(!name_of(card).empty());
        require_agreement(cards, rank);
        FUZZ_CHECK(good);
        check_nodes(cards);
    } catch (const fuzz::Aborted&) {
        FUZZ_CHECK(!good);
    }
    check_sentences();
    return 0;
}
