// The cards of start-up, with the hellos in them, as they arrive in clear: only those pass that have every rank once and
// agree in every setting, whatever else they say; the rest ends the job with a sentence that a terminal can show.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "check.hpp"
#include "fake_mpi.hpp"
#include "shim/runtime/state.hpp"
#include "shim/startup/cores.hpp"
#include "shim/startup/node_cards.hpp"
#include "wire/frame.hpp"
#include "wire/stream.hpp"

using namespace mpisec;
using namespace mpisec::shim;

namespace {

Hello genuine(int rank) {
    Hello hello;
    hello.protocol = protocol_version;
    hello.wire_version = wire::version;
    std::memcpy(hello.version.data(), "1", 1);
    std::memcpy(hello.host.data(), "node", 4);
    hello.nonce.fill(static_cast<std::uint8_t>(rank + 1));
    hello.node_id.fill(static_cast<std::uint8_t>(rank / 2));
    hello.rank = rank;
    hello.segment = 131072;
    hello.rekey_messages = 1u << 28;
    hello.rekey_bytes = 1ull << 38;
    hello.kernel = 7;
    hello.cpu_set = 9;
    hello.cpus = 2;
    hello.job.fill(5);
    return hello;
}

void check_sentences() {
    for (char c : fuzz::take_said()) FUZZ_CHECK(c == '\n' || (c >= ' ' && c <= '~'));
}

/// What must be alike on all ranks (docs/protocol.md).
bool agree(const Hello& one, const Hello& other) {
    return one.protocol == other.protocol && one.wire_version == other.wire_version &&
           std::strncmp(one.version.data(), other.version.data(), one.version.size()) == 0 &&
           one.policy == other.policy && one.threshold == other.threshold && one.segment == other.segment &&
           one.rekey_messages == other.rekey_messages && one.rekey_bytes == other.rekey_bytes &&
           one.selection == other.selection && one.purpose == other.purpose;
}

void check_cards(const NodeCards& cards, int ranks, Nodes nodes) {
    const std::vector<std::int32_t> node = wire::node_map(cards, ranks);
    std::int32_t known = 0;
    for (std::size_t r = 0; r < node.size(); ++r) {
        FUZZ_CHECK(node[r] >= 0 && node[r] <= known);  // numbered by their lowest rank
        known = std::max(known, node[r] + 1);
        FUZZ_CHECK(!name_of(cards, static_cast<std::int32_t>(r)).empty());
    }
    std::size_t listed = 0;
    for (const NodeCard& card : cards) {
        listed += card.ranks.size();
        FUZZ_CHECK(card.hello.rank == card.ranks.front() && agree(card.hello, cards[0].hello));
        if (nodes == Nodes::by_id)
            FUZZ_CHECK(std::ranges::count(cards, card.hello.node_id,
                                          [](auto& each) { return each.hello.node_id; }) == 1);
        (void)oversubscribed(card.hello, {card.hello}, cards);
    }
    FUZZ_CHECK(listed == node.size());
    (void)cpus_of_job(cards);
    for (aead::Speed speed : {aead::Speed::slow, aead::Speed::medium, aead::Speed::fast}) {
        Realm realm;
        realm.cipher_speed = speed;
        set_threshold(realm, cards);
        FUZZ_CHECK(realm.threshold == wire::automatic_longest_first_bytes(speed) ||
                   realm.threshold == 512 * 1024);
        FUZZ_CHECK(realm.short_first == wire::automatic_first_bytes(speed) ||
                   realm.short_first == realm.threshold);
    }
    const auto again = wire::decode(wire::encode(cards), ranks, nodes);
    FUZZ_CHECK(again && wire::encode(*again) == wire::encode(cards) && digest(*again) == digest(cards));
}

struct Message {
    int source;
    std::vector<std::uint8_t> bytes;
};

std::vector<std::uint8_t> cards_from(int begin, int end, Nodes nodes) {
    std::vector<Hello> hellos;
    for (int r = begin; r < end; ++r) hellos.push_back(genuine(r));
    return wire::encode(wire::cards_of(hellos, nodes));
}

/// Along the tree (docs/protocol.md): the ranks below this one send theirs, the one above sends all.
std::vector<Message> messages_to(int rank, int ranks, Nodes nodes) {
    std::vector<Message> messages;
    for (int bit = 1; (rank & bit) == 0 && rank + bit < ranks; bit *= 2)
        messages.push_back({rank + bit, cards_from(rank + bit, std::min(rank + 2 * bit, ranks), nodes)});
    if (rank > 0) messages.push_back({rank & (rank - 1), cards_from(0, ranks, nodes)});
    return messages;
}

/// What the network makes of them: a byte changed, or the end cut off.
bool change(fuzz::Input& input, std::vector<Message>& messages) {
    bool changed = false;
    while (!input.empty() && !messages.empty()) {
        auto& bytes = messages[input.take<std::uint8_t>() % messages.size()].bytes;
        const auto at = input.take<std::uint16_t>();
        const auto value = input.take<std::uint8_t>();
        if (bytes.empty()) continue;
        if (at >= 0xfff0) {
            bytes.resize(bytes.size() - std::min<std::size_t>(bytes.size(), value));
            changed = changed || value > 0;
            continue;
        }
        changed = changed || bytes[at % bytes.size()] != value;
        bytes[at % bytes.size()] = value;
    }
    return changed;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    constexpr int cards_tag = 32767;
    fuzz::Input input(data, size);
    const int ranks = 1 + input.take<std::uint8_t>() % 6, rank = input.take<std::uint8_t>() % ranks;
    const Nodes nodes = input.take<std::uint8_t>() % 4 == 0 ? Nodes::of_one_process : Nodes::by_id;
    state.world.rank = rank;
    fuzz::install_fake_mpi(ranks);
    fuzz::reset_fake_mpi();
    std::vector<Message> messages = messages_to(rank, ranks, nodes);
    const bool changed = change(input, messages);
    for (Message& message : messages)
        fuzz::arrive({MPI_COMM_WORLD, message.source, cards_tag, std::move(message.bytes)});
    try {
        const Hello own = genuine(rank);
        const NodeCards cards = exchange_cards(own, ranks, MPI_COMM_WORLD, nodes, {});
        require_agreement(leaders_of(cards), own);
        for (const NodeCard& card : cards)
            FUZZ_CHECK(card.hello.rank != rank || std::memcmp(&card.hello, &own, sizeof own) == 0);
        check_cards(cards, ranks, nodes);
    } catch (const fuzz::Aborted&) {
        FUZZ_CHECK(changed);
    }
    check_sentences();
    return 0;
}
