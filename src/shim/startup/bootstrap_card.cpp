#include "shim/startup/bootstrap_card.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstring>
#include <map>
#include <string_view>
#include <thread>

#include "base/version.hpp"
#include "keys/secret.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/startup/bootstrap_cores.hpp"
#include "shim/startup/bootstrap_place.hpp"
#include "shim/startup/bootstrap_wait.hpp"
#include "wire/frame.hpp"

namespace mpisec::shim {
namespace {

template <std::size_t n>
void put(std::array<char, n>& to, std::string_view text) {
    std::memcpy(to.data(), text.data(), std::min(n - 1, text.size()));
}

/// A received string: up to its zero, and nothing that would upset a terminal.
template <std::size_t n>
std::string get(const std::array<char, n>& from) {
    std::string text(from.data(), strnlen(from.data(), n));
    for (char& c : text) {
        if (c < ' ' || c > '~') c = '?';
    }
    return text;
}

/// Collects in what one rank differs from rank 0.
class Comparison {
  public:
    void values(const char* what, const std::string& theirs, const std::string& rank0s) {
        if (theirs == rank0s) return;
        if (!text_.empty()) text_ += ", ";
        text_ += std::string(what) + " " + theirs + " instead of " + rank0s;
    }
    void values(const char* what, std::uint64_t theirs, std::uint64_t rank0s) {
        values(what, std::to_string(theirs), std::to_string(rank0s));
    }
    const std::string& text() const { return text_; }

  private:
    std::string text_;
};

/// Empty when `card` agrees with rank 0's.
std::string differences(const Card& card, const Card& zero) {
    Comparison comparison;
    comparison.values("MPIsec version", get(card.version), get(zero.version));
    comparison.values("protocol version", card.protocol, zero.protocol);
    if (card.protocol != zero.protocol) return comparison.text();  // the rest may mean something else
    comparison.values("wire version", card.wire_version, zero.wire_version);
    auto policy = [](const Card& c) { return std::string(c.policy & 1 ? "allow" : "refuse"); };
    comparison.values("MPISEC_UNPROTECTED", policy(card), policy(zero));
    auto same_node = [](const Card& c) {
        constexpr const char* names[] = {"plain", "seal", "verify", "auto"};  // by Settings::SameNode
        return std::string(names[c.policy >> 1 & 3]);
    };
    comparison.values("MPISEC_SAME_NODE", same_node(card), same_node(zero));
    comparison.values("further policy", card.policy >> 3, zero.policy >> 3);
    auto size = [](std::uint64_t bytes) { return bytes ? std::to_string(bytes) : std::string("auto"); };
    comparison.values("MPISEC_PIPELINE_THRESHOLD", size(card.threshold), size(zero.threshold));
    comparison.values("MPISEC_SEGMENT", size(card.segment), size(zero.segment));
    comparison.values("MPISEC_REKEY_MESSAGES", card.rekey_messages, zero.rekey_messages);
    comparison.values("MPISEC_REKEY_BYTES", card.rekey_bytes, zero.rekey_bytes);
    if (card.selection != zero.selection)
        comparison.values("algorithms of collectives (MPISEC_TUNING, MPISEC_ALLGATHER, ...)", "others",
                          "the same");
    return comparison.text();
}

constexpr const char* forged =
    "; something between the nodes changes messages, or MPIsec is not loaded on every rank.";

constexpr const char* the_cards = "the other ranks' settings";

// Open MPI's non-blocking all-gather sends from each rank to every other, and its first message to a rank
// connects to it: with 64 ranks on two nodes that takes seven times as long as log2(64) rounds, with 8 less.
#ifdef OPEN_MPI
constexpr int ranks_in_one_round = 8;
#else
constexpr int ranks_in_one_round = INT_MAX;
#endif
// The program's messages come after all of these, which MPI keeps in order.
constexpr int cards_tag = 32767;

void gather_in_one_round(const Card& own, std::vector<Card>& cards, const config::Settings& settings) {
    MPI_Request request;
    check_mpi(real.Iallgather(&own, sizeof own, constants.byte, cards.data(), sizeof own, constants.byte,
                              constants.comm_world, &request),
              "MPI_Iallgather");
    complete(&request, the_cards, settings);
}

/// The all-gather of Bruck et al. (IEEE TPDS 8(11), 1997, doi:10.1109/71.642949): in each round a rank has
/// twice as many.
void gather_in_rounds(const Card& own, std::vector<Card>& cards, const config::Settings& settings) {
    const int size = static_cast<int>(cards.size());
    std::vector<Card> found(cards.size());  // of this rank and those after it
    found[0] = own;
    for (int have = 1; have < size; have *= 2) {
        const int bytes = std::min(have, size - have) * static_cast<int>(sizeof(Card));
        const int after = (own.rank + have) % size, before = (own.rank - have + size) % size;
        MPI_Request receiving, sending;
        check_mpi(real.Irecv(&found[have], bytes, constants.byte, after, cards_tag, constants.comm_world,
                             &receiving),
                  "MPI_Irecv");
        check_mpi(real.Isend(found.data(), bytes, constants.byte, before, cards_tag, constants.comm_world,
                             &sending),
                  "MPI_Isend");
        complete(&receiving, the_cards, settings);
        complete(&sending, the_cards, settings);
    }
    std::rotate_copy(found.begin(), found.end() - own.rank, found.end(), cards.begin());
}

}  // namespace

Card make_card(int rank, const config::Settings& settings, const std::array<std::uint8_t, 16>& selection) {
    Card card;
    card.protocol = protocol_version;
    card.wire_version = wire::version;
    put(card.version, version);
    gethostname(card.host.data(), card.host.size() - 1);
    keys::random_bytes(card.nonce.data(), card.nonce.size());
    card.place = place_mark();
    card.rank = rank;
    card.policy = (settings.unprotected_allow ? 1u : 0u) | static_cast<std::uint32_t>(settings.same_node)
                                                               << 1;
    card.threshold = settings.threshold;
    card.segment = settings.segment;
    card.rekey_messages = settings.rekey_messages;
    card.rekey_bytes = settings.rekey_bytes;
    card.selection = selection;
    const Cores cores = cores_here();
    card.kernel = cores.kernel;
    card.cpu_set = cores.set;
    card.cpus = cores.cpus;
    return card;
}

std::string name_of(const Card& card) {
    return "rank " + std::to_string(card.rank) + " (" + get(card.host) + ")";
}

std::vector<Card> exchange_cards(const Card& own, int size, const config::Settings& settings) {
    std::vector<Card> cards(size);
    // Nothing of the program's can be under way on MPI_COMM_WORLD yet.
    const bool few = size <= ranks_in_one_round;
    few ? gather_in_one_round(own, cards, settings) : gather_in_rounds(own, cards, settings);
    if (std::memcmp(&cards[own.rank], &own, sizeof own) != 0) {
        abort_job(std::string("The settings that this rank sent came back changed") + forged);
    }
    for (int r = 0; r < size; ++r) {
        if (cards[r].rank != r) {
            abort_job("The settings of rank " + std::to_string(r) + " did not arrive as it sent them" +
                      forged);
        }
    }
    return cards;
}

void require_agreement(const std::vector<Card>& cards, int rank) {
    constexpr int named = 5;
    std::string sentence;
    int differing = 0;
    for (const Card& card : cards) {
        std::string difference = differences(card, cards[0]);
        if (difference.empty()) continue;
        if (++differing <= named)
            sentence += (sentence.empty() ? "" : "; ") + name_of(card) + " has " + difference;
    }
    if (differing == 0) return;
    if (differing > named) sentence += "; and " + std::to_string(differing - named) + " more ranks differ";
    // One rank speaks for all; the others speak when it did not see what they see (messages were changed).
    if (rank != 0) std::this_thread::sleep_for(std::chrono::seconds(2));
    abort_job("The ranks' settings differ from those of " + name_of(cards[0]) + ": " + sentence +
              ". Make them alike on all nodes; `mpisec doctor` shows where a setting comes from.");
}

std::vector<std::int32_t> node_map(const std::vector<Card>& cards) {
    std::map<std::array<std::uint8_t, 16>, std::int32_t> number;
    std::vector<std::int32_t> node;
    for (const Card& card : cards) {
        node.push_back(
            number.try_emplace(card.place, static_cast<std::int32_t>(number.size())).first->second);
    }
    return node;
}

keys::Digest digest(const std::vector<Card>& cards) {
    return keys::sha256({reinterpret_cast<const std::uint8_t*>(cards.data()), cards.size() * sizeof(Card)});
}

}  // namespace mpisec::shim
